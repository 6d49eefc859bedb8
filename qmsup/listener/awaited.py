"""Bodies that are still on their way, and whether their connection can go on after the answer.

A client that says `Expect: 100-continue` asks before it sends its body, and is told to go on once somebody wants to
read it: whoever is refused by its head alone then keeps its 256 MB to itself. And where a body was not read, or could
not be, nobody knows where the next request would begin: the answer says that the connection ends.
"""

import socket

from gunicorn.http import Request
from gunicorn.http.body import Body
from typing_extensions import override

_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_EXPECTED = "_expected_100_continue"
"""gunicorn's name for it, which its stubs do not know."""
_READ_ANYWAY = 64 * 1024
"""Bytes that gunicorn reads behind an answer, to keep the connection."""


class _AwaitedBody(Body):
    """One of them. It changes `must_close` of its request, which gunicorn looks at when an answer begins."""

    def __init__(self, req: Request, sock: socket.socket | None, *, is_large: bool) -> None:
        """Not read yet.

        Args:
            req: whose head was read.
            sock: to tell the client to go on by; None = it did not ask.
            is_large: too large to be read when nobody wants it.
        """
        assert req.body is not None, "the head was read, so how its body ends is known"
        super().__init__(req.body.reader)
        self._req = req
        self._sock = sock
        self._closes_anyway: bool = req.must_close
        req.must_close = self._closes_anyway or is_large or sock is not None

    @override
    def _read_reader(self, size: int) -> bytes:  # type: ignore[misc]  # unknown to the stubs
        if self._sock is not None:
            sock, self._sock = self._sock, None
            sock.sendall(_GO_ON)
        try:
            data = bytes(super()._read_reader(size))  # type: ignore[misc]  # the same
        except Exception:
            self._req.must_close = True
            raise
        if not data or getattr(self.reader, "length", None) == 0:
            self._req.must_close = self._closes_anyway
        return data


def await_body(req: Request, sock: socket.socket) -> None:
    """Have a request's body asked for when it is read, instead of at once as gunicorn does."""
    asks = bool(getattr(req, _EXPECTED))
    setattr(req, _EXPECTED, False)
    length = _length(req)
    if length:
        req.body = _AwaitedBody(req, sock if asks else None, is_large=length > _READ_ANYWAY)


def _length(req: Request) -> float:
    """In bytes; infinite where it is told only as it comes."""
    for name, value in req.headers:
        if name == "TRANSFER-ENCODING":
            return float("inf")
        if name == "CONTENT-LENGTH" and value.isdecimal():
            return float(value)
    return 0
