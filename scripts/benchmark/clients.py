"""Single clients that the benchmark plays itself, byte by byte."""

import contextlib
import socket
import time
from types import TracebackType
from typing import Self

from scripts.benchmark.programs import BenchError

_PATIENCE_S = 15.0


class Held:
    """A client whose answer is under way or still to come."""

    def __init__(self, port: int, body: bytes) -> None:
        """Connects and asks for a chat completion."""
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._sock.sendall(head.encode() + body)
        self.got = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def read_to(self, wanted: bytes) -> None:
        """Reads until these bytes have come.

        Raises:
            BenchError: They did not come in time, or the answer ended.
        """
        while wanted not in self.got:
            try:
                got = self._sock.recv(65536)
            except TimeoutError:
                got = b""
            if not got:
                raise BenchError(f"no {wanted!r} in the answer, but {self.got[-300:]!r}")
            self.got += got

    def fileno(self) -> int:
        """To be polled."""
        return self._sock.fileno()

    def read_some(self, wanted: bytes) -> bool:
        """Reads what has come, once; whether these bytes were in it."""
        return wanted in self._sock.recv(65536)

    def leave(self) -> int:
        """Goes away; when that was: monotonic, in ns."""
        at = time.monotonic_ns()
        with contextlib.suppress(OSError):
            self._sock.close()
        return at
