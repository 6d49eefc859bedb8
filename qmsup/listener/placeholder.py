"""What a streaming client reads while it waits: comments of an event stream, never data.

Clients ignore them; people with curl see what they wait for, and nothing in between takes the connection for dead.
"""

from qmsup.units import Seconds

QUIET_AT_MOST = Seconds(9.0)
"""A comment follows this long after the last one, to be there within the promised 10 s."""

REMARKS = (
    "teaching the weights where to sit",
    "moving a few billion numbers, politely",
    "warming up the attention heads",
    "counting parameters, losing count, starting over",
    "asking the previous model to leave quietly",
    "dusting off the embeddings",
    "the tensors are putting on their shoes",
    "convincing the memory that it has room",
    "reading the manual, layer by layer",
    "sharpening the softmax",
)


def waiting(place: int) -> bytes:
    """A place in the line; 1 = next."""
    return b": qm-status: waiting %d\n\n" % place


LOADING = b": qm-status: loading\n\n"


def remark(turn: int) -> bytes:
    """One of the remarks; another with the next turn."""
    return f": {REMARKS[turn % len(REMARKS)]}\n\n".encode()


class Placeholder:
    """What to say next to one client that waits, and when."""

    __slots__ = ("_now_and_then", "_said_at", "_status", "_turn")

    def __init__(self, *, remarks: bool, turn: int = 0) -> None:
        """Start silent.

        Args:
            remarks: whether light remarks stand in for a repeated `loading` now and then.
            turn: where in the list of remarks this client starts, so that two do not read the same.
        """
        self._status = b""
        self._said_at = 0.0
        self._turn = turn
        self._now_and_then = remarks

    def tell(self, status: bytes, now: float) -> bytes:
        """The comment for a status; nothing when the client was told the same already."""
        if status == self._status:
            return b""
        self._status = status
        self._said_at = now
        return status

    def keep_alive(self, now: float) -> bytes:
        """A comment when the last one is long ago; nothing before that."""
        if now - self._said_at < QUIET_AT_MOST:
            return b""
        self._said_at = now
        self._turn += 1
        if self._now_and_then and self._status == LOADING and self._turn % 2:
            return remark(self._turn // 2)
        return self._status
