"""Connections over TLS to upstreams, on the loop: they look like plain sockets that do not block once they are made.

What a record is not whole of stays with OpenSSL and the kernel, so what epoll says of the descriptor holds for what
can be read: a read takes a whole record at least, and nothing that was decoded lies unread.
"""

import os
import select
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import override

from qmsup.listener.relay.loop import Loop
from qmsup.upstream.trust import context_of, distrust

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT


class Secured(ssl.SSLSocket):
    """Reads and writes as a plain socket that does not block. What could not be sent has to be sent again as it was."""

    @override
    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """What there is.

        Raises:
            BlockingIOError: nothing yet.
            OSError: the connection broke, or ended without a word, which anybody between could have caused.
        """
        data = self._recv(buflen, flags)
        # A record of ours is smaller than a read: what is decoded is taken whole.
        while (more := self.pending()) and len(data) < buflen:
            data += self._recv(min(more, buflen - len(data)), flags)
        return data

    def _recv(self, buflen: int, flags: int) -> bytes:
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        except ssl.SSLEOFError as error:
            raise OSError(0, "it ended without the word that TLS has for it") from error
        except ssl.SSLError as error:
            raise _broken(error) from error

    @override
    def send(self, data: Any, flags: int = 0) -> int:
        """Bytes that were taken.

        Raises:
            BlockingIOError: none now.
            OSError: the connection broke.
        """
        try:
            return super().send(data, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        except ssl.SSLError as error:
            raise _broken(error) from error


class Tls:
    """How one server is spoken to over TLS."""

    __slots__ = ("_changed", "_context", "_problem", "_server", "_trust")

    def __init__(self, server: str, trust: str) -> None:
        """Read which certificates count.

        Args:
            server: its name, or address in figures, as its certificate has it.
            trust: see `qmsup.upstream.trust`. What is wrong with it is told at each connection; a file that was renewed
                counts from the next one on.
        """
        self._server = server
        self._trust = trust
        self._context: ssl.SSLContext | None = None
        self._problem = ""
        self._changed = _changed(trust)
        self._read()

    @property
    def context(self) -> ssl.SSLContext:
        """What counts, also for libraries that make their own sockets.

        Raises:
            OSError: the certificates cannot be read.
        """
        changed = _changed(self._trust)
        if changed != self._changed:
            self._changed = changed
            self._read()
        if self._context is None:
            raise OSError(0, self._problem)
        return self._context

    def around(self, sock: socket.socket) -> Secured:
        """A socket for TLS in place of a plain one that is not connected yet, and is no more.

        Raises:
            OSError: its certificate could not be judged.
        """
        try:
            context = self.context
        except OSError:
            sock.close()
            raise
        return context.wrap_socket(  # type: ignore[return-value]  # the class was set
            sock,
            server_hostname=self._server,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=False,
        )

    def _read(self) -> None:
        try:
            context = context_of(self._trust)
        except OSError as error:
            # Those that were read before, if any, count on: a file is not always replaced at one stroke.
            said = error.strerror or error
            self._problem = f"the certificates of {self._trust} cannot be read: {said}"
            return
        context.sslsocket_class = Secured
        self._context = context


class Greeting:
    """A connection on its way to being made and safe."""

    __slots__ = ("_fd", "_loop", "_lost", "_made", "_sock")

    def __init__(
        self,
        loop: Loop,
        sock: Secured,
        made: Callable[[socket.socket], None],
        lost: Callable[[OSError], None],
    ) -> None:
        """Begin.

        Args:
            loop: theirs.
            sock: it is connecting. Until it is made, and if it never is, it is closed here.
            made: gets it, watched no more.
            lost: hears why not. One of the two is called, once, in a later turn, unless it is given up before.
        """
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._made = made
        self._lost = lost
        loop.watch(self._fd, _OUT, self._on_event)

    def give_up(self) -> None:
        """Close it; nobody is told."""
        self._loop.discard(self._fd, self._sock)

    def _on_event(self, _event: int) -> None:
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            _raise_if(number)
            self._sock.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.change(self._fd, _IN)
        except ssl.SSLWantWriteError:
            self._loop.change(self._fd, _OUT)
        except OSError as error:
            self.give_up()
            self._lost(error if isinstance(error, ConnectionRefusedError) else _told(error))
        else:
            self._loop.release(self._fd)
            self._made(self._sock)


def _broken(error: ssl.SSLError) -> OSError:
    return OSError(0, f"TLS failed: {error.reason or error}")


def _changed(trust: str) -> int:
    """When its file was written; 0 where there is none."""
    try:
        return Path(trust).stat().st_mtime_ns if "/" in trust else 0
    except OSError:
        return 0


def _raise_if(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))


def _told(error: OSError) -> OSError:
    return OSError(0, distrust(error))
