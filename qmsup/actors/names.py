"""The names of our sockets in the runtime folder, which a cleaner of temporary files or the end of a login removes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qmsup.log import Log

_log = Log("sockets")


@dataclass(frozen=True, slots=True)
class NameAgain:
    """A socket has lost its name: whoever has one, look, and give it its name again. May be told at any time."""


def name_again(socket: Path, give: Callable[[], bool]) -> None:
    """Have it done, and tell what came of it.

    Args:
        socket: which.
        give: binds it where it has no name; whether it had none.
    """
    try:
        was_gone = give()
    except OSError as error:
        _log.warning("socket.not_bound", socket=str(socket), because=error.strerror)
        return
    if was_gone:
        because = "somebody removed its file; who was connected stayed so"
        _log.warning("socket.bound_again", socket=str(socket), because=because)
