"""A client that reads an event stream slowly, or leaves."""

import json
import re
import socket
import time
from dataclasses import dataclass, field
from types import TracebackType

from tests.support.box import Box, until

_A_LOOK = 0.1
"""Seconds. Who reads as slowly as others write would never see the end of it."""


def numbers_in(received: bytes, name: str) -> list[int]:
    """Of the words of the fake child of this name."""
    words = rf'"{re.escape(name)}(\d+) "'.encode()
    return [int(number) for number in re.findall(words, received)]


@dataclass
class RawStream:
    """A streaming chat over a bare socket, so that what was received so far can be looked at."""

    box: Box
    model: str
    listener: str = "main"
    stream: bool = True
    max_tokens: int = 100_000
    """Without it a stream outlasts any test, however slow the machine is."""
    headers: dict[str, str] = field(default_factory=dict)
    received: bytes = b""
    at_end: bool = False

    def __enter__(self) -> "RawStream":
        body = json.dumps(
            {
                "model": self.model,
                "stream": self.stream,
                "max_tokens": self.max_tokens,
                "messages": [{"role": "user", "content": "hi"}],
            }
        ).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: qmsup\r\nContent-Type: application/json\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        self.wire = socket.create_connection(("127.0.0.1", self.box.ports[self.listener]), 10)
        self.wire.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.wire.settimeout(0.02)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: object, _trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Close the connection, whatever is under way."""
        self.wire.close()

    def look(self) -> bytes:
        """All that has come."""
        until_at = time.monotonic() + _A_LOOK
        try:
            while part := self.wire.recv(65536):
                self.received += part
                if time.monotonic() > until_at:
                    return self.received
            self.at_end = True
        except TimeoutError:
            pass
        except ConnectionResetError:
            self.at_end = True
        return self.received

    def numbers(self) -> list[int]:
        """Of the words of the fake child that have come."""
        return numbers_in(self.look(), self.model)

    def until_seen(self, text: bytes, within: float = 15.0) -> bytes:
        """Wait for these bytes; all that has come."""
        until(lambda: text in self.look(), within=within, what=f"{text!r} in {self.received!r}")
        return self.received

    def until_end(self, within: float = 15.0) -> bytes:
        """Wait for the connection's end; all that has come."""
        until(lambda: self.look() is None or self.at_end, within=within, what="the end")
        return self.received
