"""Where an HTTP answer ends and what was in it, read with as little work as will do. Pure.

The load generator shares the machine with what it measures, so this is no parser: it knows the framings
that our children, nginx, the router and qmsup send, and looks only for what is counted.
"""

import re

_STAMP = re.compile(rb'"t":"(\d{20})"')
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")
_END = b"\r\n0\r\n\r\n"


class Answer:
    """One answer after another on one connection: `feed` it bytes until it says that the answer ended.

    Attributes:
        status: `b"200"`; empty until the head is there.
        closes: The server will close the connection after this answer.
        events: Server-sent events seen so far.
        spans: The head is there, and the body ends where the server closes.
    """

    __slots__ = ("_head", "_left", "_tail", "closes", "events", "spans", "status")

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Ready for the next answer on the same connection."""
        self.status = b""
        self.closes = False
        self.events = 0
        self.spans = False
        self._head = b""
        self._left = -1  # bytes of the body still to come; -1: chunked, or as long as it is open
        self._tail = b"\r\n"  # so that a body of no chunk but the last ends like any other

    def feed(self, got: bytes) -> bool:
        """Takes what was received. True once the answer is complete.

        Args:
            got: The bytes of one `recv`, never empty. Nobody pipelines here, so none are of a next answer.
        """
        if not self.status:
            head, found, got = (self._head + got if self._head else got).partition(b"\r\n\r\n")
            if not found:
                self._head = head
                return False
            self._read_head(head)
            if not got:
                return self._left == 0
        if self._left >= 0:
            self._left -= len(got)
            return self._left <= 0
        return self._read_chunks(got)

    def _read_head(self, head: bytes) -> None:
        self.status = head[9:12]
        low = head.lower()
        self.closes = b"\r\nconnection: close" in low
        length = _LENGTH.search(low)
        if length:
            self._left = int(length[1])
        elif b"\r\ntransfer-encoding: chunked" not in low:
            self.spans = True

    def _read_chunks(self, got: bytes) -> bool:
        self.events += got.count(b"\n\n")
        if got[:1] == b"\n" and self._tail[-1:] == b"\n" and self._tail[-2:] != b"\n\n":
            self.events += 1  # an event's two line ends came in two reads
        self._tail = got[-7:] if len(got) >= 7 else (self._tail + got)[-7:]
        return self._tail == _END and not self.spans


def stamps(got: bytes) -> list[int]:
    """The times (monotonic, ns) that our own child wrote into the events in `got`."""
    return [int(stamp) for stamp in _STAMP.findall(got)]
