"""How a command ends: an exit code, and what it says on stderr."""

import os
from enum import IntEnum

from qmsup.errors import (
    AskTimedOutError,
    Code,
    ConfigError,
    QmsupError,
    RefusedError,
    SchedulerUnavailableError,
)


class Exit(IntEnum):
    """The exit codes of every verb (interfaces: commands)."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    INTERRUPTED = 130


def exit_of(error: QmsupError | OSError) -> Exit:
    """The exit code that an error of ours, or one of the system's, ends a command with."""
    match error:
        case ConfigError() | OSError():
            return Exit.USAGE
        case SchedulerUnavailableError():
            return Exit.UNREACHABLE
        case AskTimedOutError():
            return Exit.TIMED_OUT
        case RefusedError() | QmsupError():
            return Exit.REFUSED


def lines_of(error: QmsupError | OSError) -> tuple[str, ...]:
    """What to tell the user: one line, but one for each problem of a configuration and each last word of a child."""
    match error:
        case ConfigError():
            return error.problems
        case RefusedError(code=Code.CONFIG_INVALID | Code.MODEL_LOAD_FAILED):
            return tuple(str(error).splitlines())
        case RefusedError(code=Code.MODEL_NOT_FOUND) if str(error).endswith(("'", '"')):
            return (f"{_one_line(error)}; `qmsup ps` shows those there are",)
        case PermissionError(filename=str(name), strerror=str(why)):
            return (f"{name}: {why} for user {os.getuid()}; run as the user whose it is",)
        case OSError(filename=str(name), strerror=str(why)):
            return (f"{name}: {why}",)
        case _:
            return (_one_line(error),)


def _one_line(error: QmsupError | OSError) -> str:
    return " ".join(str(error).split())
