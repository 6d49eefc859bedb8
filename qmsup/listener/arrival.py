"""How much of a request has come: a thread is for requests that are here, not for those that may come some day.

Only where a request ends is looked for. What is odd about it is the parser's to say, so in doubt it is not waited for.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from weakref import WeakKeyDictionary

from gunicorn.workers.gthread import TConn

from qmsup.units import Seconds

MOST = 64 * 1024
"""Bytes that are gathered for one client; a request beyond them is read by a thread."""

LONGEST = Seconds(60.0)
"""How long a request may take to come, but for what is large."""

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*\r\n")
_BY_THREAD = re.compile(rb"\r\n(content-length|transfer-encoding|expect)")


class Arrival(Enum):
    """What has come of a request."""

    PARTIAL = auto()
    """It goes on: wait for the rest."""
    HERE = auto()
    """Nothing more has to come before it can be judged."""
    LONG = auto()
    """Its body is large, or of a length that is told only as it comes: somebody has to read it."""


def arrival_of(data: bytes) -> Arrival:
    """Judge the bytes from the start of a request on."""
    end = data.find(_END_OF_HEAD)
    if end < 0:
        return Arrival.PARTIAL if len(data) < MOST and _may_be_a_head(data) else Arrival.HERE
    head = data[: end + 2].lower()
    if _BY_THREAD.search(head) is None:
        return Arrival.HERE
    length = _LENGTH.search(head)
    if length is None or len(_BY_THREAD.findall(head)) > 1:
        return Arrival.LONG
    whole = end + len(_END_OF_HEAD) + int(length[1])
    if len(data) >= whole:
        return Arrival.HERE
    return Arrival.PARTIAL if whole <= MOST else Arrival.LONG


def _may_be_a_head(data: bytes) -> bool:
    line, found, _ = data.partition(b"\n")
    if not found:
        return True
    return line.endswith(b"\r") and b" HTTP/1." in line and b"\n\n" not in data


@dataclass(slots=True)
class _Part:
    data: bytes
    since: float


class Arriving:
    """The beginnings of requests; one whose connection is gone is forgotten by itself."""

    def __init__(self) -> None:
        self._parts: WeakKeyDictionary[TConn, _Part] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._parts)

    def so_far(self, conn: TConn) -> bytes:
        """What has come so far."""
        if not self._parts:
            return b""
        part = self._parts.get(conn)
        return b"" if part is None else part.data

    def keep(self, conn: TConn, data: bytes, now: float) -> bool:
        """Keep what has come so far; False when it has been coming for too long already."""
        part = self._parts.get(conn)
        if part is None:
            self._parts[conn] = _Part(data, now)
            return True
        part.data = data
        return now - part.since < LONGEST

    def forget(self, conn: TConn) -> None:
        """It is dealt with."""
        if self._parts:
            self._parts.pop(conn, None)
