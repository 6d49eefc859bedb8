"""`qmsup serve`: everything in one command."""

import sys
from pathlib import Path

import click

from qmsup.daemon.commands.options import config_option, ignore_hang_up


@click.command(short_help="Run everything: the scheduler and all listeners.")
@config_option
@click.option("--watch", is_flag=True, help="Reload the file whenever it changes.")
def command(*, config: Path, watch: bool) -> None:
    """Run the scheduler and one gunicorn per listener, and restart either when it dies.

    Ctrl-C or TERM stops all, the models too; a second one at once. HUP reloads the configuration.
    """
    ignore_hang_up()
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
        click.echo(f"listener {listener.name}: http://{listener.host}:{listener.port}/v1", err=True)
    code = Serve(spec, config.resolve(), watch=watch).run()
    if code is Exit.UNUSABLE:
        click.echo("qmsup: the scheduler cannot start: it says why above", err=True)
    sys.exit(code)
