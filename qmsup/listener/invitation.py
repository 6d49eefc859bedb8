"""`Expect: 100-continue`: a client that asks before it sends its body is told to go on once somebody wants to read it.

Whoever is refused by its head alone then keeps its 256 MB to itself.
"""

import socket

from gunicorn.http import Request
from gunicorn.http.body import Body
from typing_extensions import override

_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_EXPECTED = "_expected_100_continue"
"""gunicorn's name for it, which its stubs do not know."""
_FRAMING = ("CONTENT-LENGTH", "TRANSFER-ENCODING")


class _AwaitedBody(Body):
    """A body that is asked for by reading it."""

    def __init__(self, req: Request, sock: socket.socket) -> None:
        assert req.body is not None, "the head was read, so how its body ends is known"
        super().__init__(req.body.reader)
        self._req = req
        self._sock = sock
        self._was_to_close: bool = req.must_close
        self._is_invited = False
        # Without an invitation nobody knows whether the next bytes are a body or another request.
        req.must_close = True

    @override
    def _read_reader(self, size: int) -> bytes:  # type: ignore[misc]  # unknown to the stubs
        if not self._is_invited:
            self._is_invited = True
            self._sock.sendall(_GO_ON)
            self._req.must_close = self._was_to_close
        return bytes(super()._read_reader(size))  # type: ignore[misc]  # the same


def invite_late(req: Request, sock: socket.socket) -> None:
    """Have the client told to go on when its body is read, instead of at once as gunicorn does."""
    if not getattr(req, _EXPECTED):
        return
    setattr(req, _EXPECTED, False)
    if _has_body(req):
        req.body = _AwaitedBody(req, sock)


def _has_body(req: Request) -> bool:
    framing = {name: value for name, value in req.headers if name in _FRAMING}
    return framing.get("CONTENT-LENGTH", "0") != "0" or "TRANSFER-ENCODING" in framing
