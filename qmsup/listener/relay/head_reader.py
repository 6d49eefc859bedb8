"""The head of one answer as it comes in, piece by piece, and the interim answers before it."""

from qmsup.listener.relay.framing import (
    MAX_HEAD,
    FramingError,
    Head,
    HeadLines,
    read_head,
    read_interim,
)

_BLANK_LINE = len(b"\r\n\r\n")


class HeadReader:
    """Keeps what has come until the head is whole."""

    __slots__ = ("_buffer", "_interim", "_method", "_upgrades")

    def __init__(self, method: str, *, upgrades: bool) -> None:
        """Nothing has come.

        Args:
            method: of the request.
            upgrades: the answer may make a tunnel of the connection.
        """
        self._method = method
        self._upgrades = upgrades
        self._buffer = b""
        self._interim = 0

    def feed(self, data: bytes) -> tuple[list[HeadLines], Head | None, bytes]:
        """Read on.

        Returns:
            Interim answers that have come whole; the head, once it has; and what came behind it.

        Raises:
            FramingError: this is no HTTP/1 answer, or one whose interim answers have no end.
        """
        buffer = self._buffer + data if self._buffer else data
        head = read_head(buffer, method=self._method, upgrades=self._upgrades)
        if isinstance(head, int):
            self._buffer = buffer[head:]
            return self._read_interim(buffer[:head]) if head else [], None, b""
        self._buffer = b""
        start = head.length - len(head.text) - _BLANK_LINE
        interim = self._read_interim(buffer[:start]) if start else []
        return interim, head, buffer[head.length :]

    def _read_interim(self, interim: bytes) -> list[HeadLines]:
        self._interim += len(interim)
        if self._interim > MAX_HEAD:
            raise FramingError("it sends interim answers without end")
        return read_interim(interim)
