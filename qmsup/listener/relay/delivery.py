"""How an upstream's body reaches the client: as it came, or in a framing of our own.

Each way is fed what arrived and gives what to send on. `is_complete` is true once the answer has come whole.
`break_off` gives what tells the client that there will be no more, before its connection is closed. Where a reading
is given, it sees the payload as it passes.
"""

import json
from typing import Protocol

from qmsup.errors import Code, Refusal
from qmsup.listener.errors import ERROR_NAME, sse_error
from qmsup.listener.outcome import Reading
from qmsup.listener.relay.framing import Chunked, Counted, Framing, FramingError, Head, NoBody

LAST_CHUNK = b"0\r\n\r\n"
_PARTING = b"\n\n"
"""Keeps an event apart from one that may have been cut in the middle."""
_MAX_COLLECTED = 64 * 1024
_SHOWN = 300
_SUCCESS = range(200, 300)


class Delivery(Protocol):
    """One body on its way to one client."""

    is_complete: bool

    def feed(self, data: bytes) -> bytes:
        """What to send for what arrived."""
        ...

    def close(self) -> bytes | None:
        """The upstream closed its connection: what ends the answer, or None if that was too early."""
        ...

    def break_off(self, event: bytes) -> bytes:
        """What to send when the rest never comes, an event that tells why; the connection is closed after it."""
        ...


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Passing:
    """Bytes as they came, framing and all."""

    __slots__ = ("_feed", "_framing", "_is_event_stream", "_pieces", "_reading", "is_complete")

    def __init__(
        self, framing: Framing, *, is_event_stream: bool, reading: Reading | None = None
    ) -> None:
        self._framing = framing
        self._feed = framing.feed
        self._reading = reading
        self._pieces = None if reading is None else reading.pieces
        self._is_event_stream = is_event_stream
        self.is_complete = framing.ended

    def feed(self, data: bytes) -> bytes:
        """What to send for what arrived."""
        try:
            taken = self._feed(data, self._pieces)
        except FramingError:
            # What came before the fault was not passed on, so where the client stands is not where we stand.
            self._is_event_stream = False
            raise
        if self._reading is not None:
            self._reading.added(len(data))
        self.is_complete = self._framing.ended
        return data if taken == len(data) else data[:taken]

    def close(self) -> bytes | None:
        """Only an answer without length may end so."""
        self.is_complete = not self._framing.is_delimited
        return b"" if self.is_complete else None

    def break_off(self, event: bytes) -> bytes:
        """An error event where one can be put in; nothing else could be told apart from the answer."""
        if not self._is_event_stream or type(self._framing) in (Counted, NoBody):
            return b""
        event = _PARTING + event
        if type(self._framing) is not Chunked:
            return event
        if self._framing.is_between:
            return chunk(event)
        # Inside a chunk its own payload can go on, as far as its announced size reaches.
        return event if self._framing.missing else b""


class Rewrapped:
    """The payload in chunks of ours, or bare for a client that knows no chunks."""

    __slots__ = ("_chunked", "_framing", "_is_event_stream", "_reading", "is_complete")

    def __init__(
        self,
        framing: Framing,
        *,
        is_event_stream: bool,
        chunked: bool,
        reading: Reading | None = None,
    ) -> None:
        self._framing = framing
        self._reading = reading
        self._chunked = chunked
        self._is_event_stream = is_event_stream
        self.is_complete = framing.ended

    def feed(self, data: bytes) -> bytes:
        """What to send for what arrived."""
        payload = self._framing.unwrap(data)
        if self._reading is not None:
            self._reading.pieces.append(payload)
            self._reading.added(len(payload))
        self.is_complete = self._framing.ended
        if not payload:
            return self.ending()
        if not self._chunked:
            return payload
        return chunk(payload) + self.ending()

    def ending(self) -> bytes:
        """What ends the body, if it has ended."""
        return LAST_CHUNK if self.is_complete and self._chunked else b""

    def close(self) -> bytes | None:
        """Only an answer without length may end so."""
        if self._framing.is_delimited:
            return None
        self.is_complete = True
        return self.ending()

    def break_off(self, event: bytes) -> bytes:
        """An error event, if this is an event stream."""
        if not self._is_event_stream:
            return b""
        event = _PARTING + event
        return chunk(event) if self._chunked else event


class Enclosed:
    """An answer that is no event stream, for a client whose event stream has begun: one event, at its end."""

    __slots__ = (
        "_chunked",
        "_collected",
        "_framing",
        "_is_error",
        "_names_errors",
        "_reading",
        "_status",
        "is_complete",
    )

    def __init__(
        self,
        framing: Framing,
        *,
        status: int,
        is_error: bool,
        chunked: bool,
        reading: Reading | None = None,
        names_errors: bool = False,
    ) -> None:
        self._framing = framing
        self._reading = reading
        self._names_errors = names_errors
        self._status = status
        self._is_error = is_error
        self._chunked = chunked
        self._collected = b""
        self.is_complete = framing.ended

    def feed(self, data: bytes) -> bytes:
        """Nothing, until the answer is whole."""
        payload = self._framing.unwrap(data)
        if self._reading is not None:
            self._reading.pieces.append(payload)
            self._reading.added(len(payload))
        self._collected += payload
        if len(self._collected) > _MAX_COLLECTED:
            if not self._is_error:  # its start would look like the whole
                raise FramingError(
                    f"its answer is no event stream, and with more than {_MAX_COLLECTED} bytes too large to be made one"
                )
            self._collected = self._collected[:_MAX_COLLECTED]
        self.is_complete = self._framing.ended
        return self.ending()

    def ending(self) -> bytes:
        """The one event and what ends the body, if the answer is whole."""
        if not self.is_complete:
            return b""
        event = self._event()
        if not self._chunked:
            return event
        return chunk(event) + LAST_CHUNK if event else LAST_CHUNK

    def close(self) -> bytes | None:
        """Only an answer without length may end so."""
        if self._framing.is_delimited:
            return None
        self.is_complete = True
        return self.ending()

    def break_off(self, event: bytes) -> bytes:
        """The error instead of what was collected."""
        return chunk(event) if self._chunked else event

    def _event(self) -> bytes:
        if self._is_error and not self._has_error():
            shown = self._collected[:_SHOWN].decode("utf-8", "replace")
            return sse_error(
                Refusal(
                    code=Code.UPSTREAM_FAILED,
                    message=f"the model's server answered {self._status}: {shown}",
                ),
                named=self._names_errors,
            )
        if not self._collected.strip():  # clients read JSON in every event
            return b""
        name = ERROR_NAME if self._is_error and self._names_errors else b""
        lines = self._collected.splitlines()
        return name + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"

    def _has_error(self) -> bool:
        try:
            said = json.loads(self._collected)
        except ValueError:
            return False
        return isinstance(said, dict) and "error" in said


def passing_on(
    head: Head, *, is_http11: bool, reading: Reading | None
) -> tuple[Passing | Rewrapped, bool]:
    """How an answer reaches a client that has heard nothing yet, and whether it does as it came."""
    is_event_stream = head.lines.is_event_stream
    if is_http11 or type(head.framing) is not Chunked:
        return Passing(head.framing, is_event_stream=is_event_stream, reading=reading), True
    bare = Rewrapped(head.framing, is_event_stream=is_event_stream, chunked=False, reading=reading)
    return bare, False


def put_behind(
    head: Head, *, chunked: bool, reading: Reading | None, names_errors: bool
) -> Rewrapped | Enclosed:
    """How an answer goes on with an event stream that has begun without it.

    Raises:
        FramingError: it cannot, since its client was not told that it is compressed.
    """
    if head.lines.is_encoded:
        raise FramingError(
            f"its answer ({head.lines.status}) is compressed, which was not asked for"
        )
    is_error = head.lines.status not in _SUCCESS
    if head.lines.is_event_stream and not is_error:
        return Rewrapped(head.framing, is_event_stream=True, chunked=chunked, reading=reading)
    return Enclosed(
        head.framing,
        status=head.lines.status,
        is_error=is_error,
        chunked=chunked,
        reading=reading,
        names_errors=names_errors,
    )
