"""What the verbs that start processes have in common."""

import signal
from pathlib import Path
from types import FrameType

import click

config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    required=True,
    help="The configuration file.  [env: QMSUP_CONFIG]",
)


def begin_with_signals() -> None:
    """Let no HUP end a process that does not listen to it yet: it reads its configuration in a moment anyway.

    And have ends of children told, where whoever started this process ignores them, which is passed on. What other
    daemons reopen their logs or renew themselves by means nothing here, and ends nothing.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, _hear_nothing)  # not SIG_IGN, which models would inherit


def _hear_nothing(_number: int, _frame: FrameType | None) -> None:
    pass
