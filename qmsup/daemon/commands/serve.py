"""`qmsup serve`: everything in one command."""

import contextlib
import sys
from pathlib import Path

import click

from qmsup.daemon.commands.options import begin_with_signals, config_option


@click.command(short_help="Run everything: the scheduler and all listeners.")
@config_option
@click.option("--watch", is_flag=True, help="Reload the file whenever it changes.")
def command(*, config: Path, watch: bool) -> None:
    """Run the scheduler and one gunicorn per listener, and restart either when it dies.

    Ctrl-C or TERM stops all, the models too; a second one at once. HUP reloads the configuration.
    """
    begin_with_signals()
    import qmsup.config
    from qmsup import log
    from qmsup.daemon.exits import Exit
    from qmsup.daemon.folders import make_folders
    from qmsup.daemon.lock import see_that_nobody_holds
    from qmsup.daemon.serve import Serve, check_ports

    spec = qmsup.config.load(config)
    log.set_up(level=spec.log_level, style=spec.log_format)
    see_that_nobody_holds()  # first: what that one has started has the ports
    check_ports(spec)
    make_folders()
    for listener in spec.listeners.values():
        _say(f"listener {listener.name}: http://{listener.host}:{listener.port}/v1")
    code = Serve(spec, config.resolve(), watch=watch).run()
    if code is Exit.UNUSABLE:
        _say("qmsup: the scheduler cannot start: it says why above")
    sys.exit(code)


def _say(text: str) -> None:
    with contextlib.suppress(
        OSError
    ):  # a log on a full disk, a pipe without a reader: no reason not to serve
        click.echo(text, err=True)
