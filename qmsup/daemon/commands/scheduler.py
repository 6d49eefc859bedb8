"""`qmsup scheduler`: the scheduler process alone, for supervisord or systemd."""

import sys
from pathlib import Path

import click

from qmsup.daemon.commands.options import begin_with_signals, config_option


@click.command(short_help="Run the scheduler process alone.")
@config_option
def command(config: Path) -> None:
    """Run the scheduler process alone, for a supervisor that runs the listeners beside it."""
    begin_with_signals()
    import qmsup.config
    from qmsup.daemon.main import run_scheduler

    sys.exit(run_scheduler(qmsup.config.read_file(config)))
