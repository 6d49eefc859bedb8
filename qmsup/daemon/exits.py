"""Exit codes of the processes that qmsup starts; `serve` and other supervisors read them."""

from enum import IntEnum


class Exit(IntEnum):
    """How a scheduler or `serve` process ended."""

    OK = 0
    BROKEN = 1
    """An actor failed: our bug, logged with its traceback. A fresh process may do better."""
    UNUSABLE = 2
    """The configuration, a folder, a port or another scheduler stands in the way. A restart changes nothing."""
