"""Requests that are over, as the listeners' workers tell of them (wire: PROTOCOL.md, `activity`)."""

from collections.abc import Iterator

from qmsup.ids import ListenerName
from qmsup.wire import codec, listening

Finished = listening.Finished

FIELDS = ("listener", *Finished.__struct_fields__)
"""Of a row, in order."""

Row = tuple[object, ...]
"""What became of one request: a value for each of FIELDS."""

_PRIVATE = frozenset({"key", "fingerprint"})
"""What concerns the operator alone."""


def read(requests: bytes) -> tuple[Finished, ...]:
    """What the gateway handed on unread.

    Raises:
        PeerError: it cannot be understood.
    """
    return codec.decode_requests(requests)


def row_of(listener: ListenerName, request: Finished) -> Row:
    """A request as a row."""
    return (listener, *(getattr(request, name) for name in Finished.__struct_fields__))


def told_of(row: Row, *, to_all: bool) -> dict[str, object]:
    """A row as JSON can hold it; `to_all` leaves out what others must not know."""
    return dict(_told(row, to_all=to_all))


def _told(row: Row, *, to_all: bool) -> Iterator[tuple[str, object]]:
    for name, value in zip(FIELDS, row, strict=True):
        if not (to_all and name in _PRIVATE):
            yield name, value
