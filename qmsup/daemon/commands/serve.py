"""`qmsup serve`: everything in one command."""

import sys
from pathlib import Path

import click

from qmsup.daemon.commands.options import config_option, load_or_exit


@click.command(short_help="Run everything: the scheduler and all listeners.")
@config_option
def command(config: Path) -> None:
    """Run the scheduler and one gunicorn per listener, and restart either when it dies.

    Ctrl-C or TERM stops all, the models too; a second one at once.
    """
    from qmsup import log, places
    from qmsup.daemon.serve import Serve, check_ports
    from qmsup.errors import ConfigError

    spec = load_or_exit(config)
    log.set_up(level=spec.log_level, style=spec.log_format)
    try:
        check_ports(spec)
        places.make_private(places.runtime_dir())
        places.make_private(places.state_dir())
    except ConfigError as error:
        raise SystemExit(_complain(*error.problems)) from None
    except OSError as error:
        raise SystemExit(
            _complain(
                f"cannot make {error.filename} ({error.strerror}): "
                "set QMSUP_RUNTIME_DIR and QMSUP_STATE_DIR to folders of yours"
            )
        ) from None
    for listener in spec.listeners.values():
        click.echo(f"listener {listener.name}: http://{listener.host}:{listener.port}/v1", err=True)
    sys.exit(Serve(spec, config.resolve()).run())


def _complain(*problems: str) -> int:
    for problem in problems:
        click.echo(f"qmsup: {problem}", err=True)
    return 2
