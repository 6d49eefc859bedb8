"""HTTP/1.1 answers as bytes: where a head ends, what it says about its body, where that body ends.

Nothing here reads a socket. A framing is fed what arrived and says how much of it is the body (`feed`), and what in
it is payload (to a list that is handed in, or by `unwrap`); any split of the same bytes gives the same result.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from qmsup.errors import QmsupError

MAX_HEAD = 64 * 1024
"""A larger head is no answer of a model server."""
_MAX_CHUNK_LINE = 4096
_MAX_CHUNK_DIGITS = 15
_MAX_LENGTH_DIGITS = 18
_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})\r\n")
_HEX = b"0123456789abcdefABCDEF"
_NO_CONTENT = 204
_NOT_MODIFIED = 304
_FINAL = 200
SWITCHES = 101
"""The status of an answer after which the connection speaks another protocol."""
_SHORT = 2048
"""Bytes."""


class FramingError(QmsupError):
    """What an upstream sent is not an HTTP/1.1 answer. Its connection is of no use any more."""


class NoBody:
    """HEAD, 204, 304: the answer ends with its head."""

    __slots__ = ()
    ended = True
    is_delimited = True

    def feed(self, data: bytes, payload: list[bytes] | None = None) -> int:  # noqa: ARG002 - one of the framings
        """How many bytes of `data` belong to the body: none."""
        return 0

    def unwrap(self, data: bytes) -> bytes:  # noqa: ARG002 - one of the framings
        """The payload in `data`: none."""
        return b""


class Counted:
    """`Content-Length`."""

    __slots__ = ("ended", "left")
    is_delimited = True

    def __init__(self, length: int) -> None:
        self.left = length
        self.ended = length == 0

    def feed(self, data: bytes, payload: list[bytes] | None = None) -> int:
        """How many bytes of `data` belong to the body; they are added to `payload`."""
        taken = min(self.left, len(data))
        self.left -= taken
        self.ended = self.left == 0
        if payload is not None:
            payload.append(data[:taken])
        return taken

    def unwrap(self, data: bytes) -> bytes:
        """The payload in `data`."""
        return data[: self.feed(data)]


class UntilClose:
    """Neither a length nor chunks: the end of the connection is the end of the body."""

    __slots__ = ()
    ended = False
    is_delimited = False

    def feed(self, data: bytes, payload: list[bytes] | None = None) -> int:
        """How many bytes of `data` belong to the body: all, and they are added to `payload`."""
        if payload is not None:
            payload.append(data)
        return len(data)

    def unwrap(self, data: bytes) -> bytes:
        """The payload in `data`: all."""
        return data


class Chunked:
    """`Transfer-Encoding: chunked`, trailers included.

    Attributes:
        missing: bytes of the current chunk's payload that have not come yet.
        is_between: a whole number of chunks has come so far, and no part of another: one of ours could be put in.
    """

    __slots__ = ("_crlf", "_line", "_trailing", "ended", "is_between", "missing")
    is_delimited = True

    def __init__(self) -> None:
        self.ended = False
        self.is_between = True
        self.missing = 0
        self._crlf = 0
        self._line = b""
        self._trailing = False

    def unwrap(self, data: bytes) -> bytes:
        """The payload in `data`."""
        pieces: list[bytes] = []
        self.feed(data, pieces)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def feed(self, data: bytes, payload: list[bytes] | None = None) -> int:
        """How many bytes of `data` belong to the body, framing included; what is between is added to `payload`."""
        if self.is_between and (size_line := _SIZE_LINE.match(data)) is not None:
            start, end = size_line.end(), len(data)
            if start + int(size_line[1], 16) + 2 == end > start + 2 and data.endswith(b"\r\n"):
                # One event in one chunk in one read: what nearly all of a stream consists of.
                if payload is not None:
                    payload.append(data[start:-2])
                return end
        return self._feed(data, payload)

    def _feed(self, data: bytes, payload: list[bytes] | None) -> int:
        at = 0
        end = len(data)
        while at < end and not self.ended:
            if self.missing:
                stop = min(end, at + self.missing)
                if payload is not None:
                    payload.append(data[at:stop])
                self.missing -= stop - at
                at = stop
            elif self._crlf == 2 and data.startswith(b"\r\n", at):  # noqa: PLR2004 - both at once, as a rule
                self._crlf = 0
                at += 2
            elif self._crlf:
                if data[at] != b"\r\n"[2 - self._crlf]:
                    raise FramingError("a chunk is longer than its size says")
                self._crlf -= 1
                at += 1
            else:
                at = self._read_line(data, at)
        self.is_between = not (
            self.ended or self.missing or self._crlf or self._line or self._trailing
        )
        return at

    def _read_line(self, data: bytes, at: int) -> int:
        stop = data.find(b"\n", at)
        line = self._line + (data[at:] if stop < 0 else data[at:stop])
        if len(line) > _MAX_CHUNK_LINE:
            raise FramingError("a chunk's size line does not end")
        if stop < 0:
            self._line = line
            return len(data)
        self._line = b""
        if not line.endswith(b"\r"):
            raise FramingError("a line of the chunked body does not end in CRLF")
        line = line[:-1]
        if b"\r" in line:
            raise FramingError("a line of the chunked body holds a bare carriage return")
        if self._trailing:
            self.ended = not line
        else:
            self.missing = _chunk_size(line)
            if self.missing:
                self._crlf = 2
            else:
                self._trailing = True
        return stop + 1


Framing = NoBody | Counted | UntilClose | Chunked


@dataclass(slots=True, frozen=True)
class Head:
    """The head of a final answer.

    Attributes:
        text: all of it, without the closing blank line: heads of one text differ in nothing but their place.
        lines: what it says.
        length: the rest of the buffer starts here.
    """

    text: bytes
    lines: "HeadLines"
    framing: Framing
    length: int


@dataclass(slots=True, frozen=True)
class HeadLines:
    """What the lines of a head say. A server says the same few things over and over, so they are read once.

    Attributes:
        reason: what followed the status code, possibly nothing.
        fields: each header line as it came, without line end, and its name in lower case; in order.
        is_encoded: the payload is compressed.
        counted: the Content-Length; None = there is none.
        coding: the Transfer-Encoding; None = there is none.
        is_json: the payload is.
    """

    status: int
    reason: bytes
    fields: tuple[tuple[bytes, bytes], ...] = ()
    is_event_stream: bool = False
    is_encoded: bool = False
    counted: int | None = None
    coding: bytes | None = None
    is_json: bool = False


def read_head(buffer: bytes, *, method: str, upgrades: bool = False) -> Head | int:
    """The first final head in what has come so far.

    Args:
        buffer: everything since the connection was made, or since the place an earlier call named.
        method: of the request; an answer to HEAD has no body.
        upgrades: the request asked for another protocol, so 101 is a final head, too.

    Returns:
        The head, or how many bytes of `buffer` were interim answers (1xx) and may be dropped.

    Raises:
        FramingError: this is no HTTP/1 answer, or one that contradicts itself.
    """
    start = 0
    while True:
        stop = buffer.find(b"\r\n\r\n", start)
        if (len(buffer) if stop < 0 else stop) - start > MAX_HEAD:
            raise FramingError(f"the head of the answer is longer than {MAX_HEAD} bytes")
        if stop < 0:
            if not b"HTTP/1.".startswith(buffer[start : start + 7]):
                raise FramingError("the answer is not HTTP/1")
            return start
        text = buffer[start:stop]
        lines = read_lines(text)
        if lines.status >= _FINAL:
            return Head(text, lines, _framing(lines, method), stop + 4)
        if lines.status == SWITCHES:
            if upgrades:
                return Head(text, lines, UntilClose(), stop + 4)
            raise FramingError("the answer switches protocols, which was not asked for")
        start = stop + 4


def read_interim(buffer: bytes) -> list[HeadLines]:
    """What interim answers say that a proxy passes on (RFC 9110, 15.2): all but 100, which nobody here asked for.

    Args:
        buffer: what `read_head` told to be interim, whole heads one after the other.

    Raises:
        FramingError: one is malformed.
    """
    heads = []
    for text in buffer.split(b"\r\n\r\n")[:-1]:
        first, *lines = _lines(text)
        status, reason = _status_line(first)
        if status != 100:  # noqa: PLR2004 - Continue
            heads.append(_final(status, reason, lines))
    return heads


def read_lines(text: bytes) -> HeadLines:
    """What a head says; `text` is without its closing blank line."""
    return _remembered(text) if is_short(text) else _read_lines(text)


def is_short(text: bytes) -> bool:
    """Whether a head is worth remembering: a long one is nothing that comes again."""
    return len(text) <= _SHORT


def _read_lines(text: bytes) -> HeadLines:
    status, reason = _status_line(text.partition(b"\r\n")[0])
    if status < _FINAL and status != SWITCHES:
        return HeadLines(status, reason)
    return _final(status, reason, _lines(text)[1:])


_remembered = lru_cache(maxsize=512)(_read_lines)


def _status_line(line: bytes) -> tuple[int, bytes]:
    version, _, rest = line.partition(b" ")
    code, _, reason = rest.partition(b" ")
    is_code = len(code) == 3 and code.isdigit() and not code.startswith(b"0")  # noqa: PLR2004
    if not version.startswith(b"HTTP/1.") or not is_code:
        raise FramingError("the answer does not start with an HTTP/1 status line")
    return int(code), reason


def _lines(head: bytes) -> list[bytes]:
    """The lines of a head. A client might see a line end in what is none here, so such a head is not passed on."""
    lines = head.split(b"\r\n")
    ends = len(lines) - 1
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        raise FramingError("the head of the answer holds a bare line break or a NUL")
    return lines


def _final(status: int, reason: bytes, lines: list[bytes]) -> HeadLines:
    fields: list[tuple[bytes, bytes]] = []
    counted: bytes | None = None
    coding: bytes | None = None
    is_event_stream = is_encoded = is_json = False
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or b" " in name or b"\t" in name:
            raise FramingError("a header line of the answer is malformed")
        fields.append((name, line))
        if name == b"content-length":
            counted = _agreed(counted, value)
        elif name == b"transfer-encoding":
            coding = value if coding is None else coding + b"," + value
        elif name == b"content-type":
            kind = value.strip().lower()
            is_event_stream = kind.startswith(b"text/event-stream")
            is_json = kind.startswith(b"application/json")
        elif name == b"content-encoding":
            is_encoded = value.strip().lower() not in (b"", b"identity")
    return HeadLines(
        status,
        reason,
        tuple(fields),
        is_event_stream,
        is_encoded,
        None if counted is None else int(counted),
        coding,
        is_json,
    )


def _agreed(known: bytes | None, value: bytes) -> bytes:
    value = value.strip()
    if not value.isdigit() or len(value) > _MAX_LENGTH_DIGITS or known not in (None, value):
        raise FramingError("the answer has no usable Content-Length")
    return value


def _framing(lines: HeadLines, method: str) -> Framing:
    if method == "HEAD" or lines.status in (_NO_CONTENT, _NOT_MODIFIED):
        return NoBody()
    if lines.coding is not None and _is_chunked(lines.coding):
        return Chunked()
    if lines.counted is not None:
        return Counted(lines.counted)
    return UntilClose()


def _is_chunked(coding: bytes) -> bool:
    """What `Transfer-Encoding` says: chunked, or nothing (the old word for that is identity).

    Another coding was not asked for, and what it hides would reach the client undecoded and untold.
    """
    codings = [name for part in coding.lower().split(b",") if (name := part.strip()) != b"identity"]
    if codings not in ([], [b"chunked"]):
        raise FramingError("the answer has a Transfer-Encoding that was not asked for")
    return bool(codings)


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip() if b";" in line or b" " in line else line
    if not digits or len(digits) > _MAX_CHUNK_DIGITS or digits.strip(_HEX):
        raise FramingError("a chunk has no size")
    return int(digits, 16)
