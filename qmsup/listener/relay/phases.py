"""Where a relayed request stands, and what becomes of its client's connection; machine.py has the picture."""

from enum import IntEnum


class Phase(IntEnum):
    """Where a relayed request stands."""

    ASKING = 0
    WAITING = 1
    CONNECTING = 2
    HEAD = 3
    BODY = 4
    TUNNEL = 5
    """Whatever comes on either side goes to the other as it is."""
    DONE = 6


class Ending(IntEnum):
    """What becomes of the client's connection once everything was sent."""

    KEEP = 0
    """It can carry another request."""
    CLOSE = 1
    """It is closed in good order; a chunked or counted answer shows by itself whether it is whole."""
    RESET = 2
    """It is reset: an answer that only its close would end is not whole, and the client must not think so."""
