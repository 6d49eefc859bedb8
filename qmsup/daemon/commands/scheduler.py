"""`qmsup scheduler`: the scheduler process alone, for supervisord or systemd."""

import sys
from pathlib import Path

import click

from qmsup.daemon.commands.options import config_option, load_or_exit


@click.command(short_help="Run the scheduler process alone.")
@config_option
def command(config: Path) -> None:
    """Run the scheduler process alone, for a supervisor that runs the listeners beside it."""
    from qmsup.daemon.main import run_scheduler

    spec = load_or_exit(config)
    sys.exit(run_scheduler(spec, config.resolve()))
