"""A short question by HTTP to another machine. Whatever that answers costs so much time and memory at most.

Libraries bound the time between two bytes, and follow and unpack what they are told. Here the time of the whole counts,
who sends us elsewhere has not answered, and nothing is unpacked. Waits, so it has a thread of its own.
"""

import io
import socket
import ssl
import time
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import cast

from qmsup.units import Seconds
from qmsup.upstream.trust import distrust

_CHUNK = 64 * 1024
_LARGEST_HEAD = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_END_OF_CHUNKS = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came. The body is empty where only the head was asked for."""

    status: int
    body: bytes


class NoAnswerError(Exception):
    """There is none that can be read; the text says why, without a subject.

    Attributes:
        is_distrust: TLS failed.
    """

    def __init__(self, because: str, *, is_distrust: bool = False) -> None:
        super().__init__(because)
        self.is_distrust = is_distrust


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquirer:
    """Asks one server.

    Attributes:
        where: `host:port`.
        tls: how it is spoken to safely; None = not at all.
        api_key: sent along; "" = none.
        within: for each whole answer.
    """

    where: str
    tls: ssl.SSLContext | None = None
    api_key: str = ""
    within: Seconds

    def status(self, path: str) -> int:
        """The status of a GET; no body is waited for.

        Raises:
            NoAnswerError: there is none.
        """
        return self._ask(path, most=0).status

    def get(self, path: str, most: int) -> Answer:
        """The whole answer to a GET.

        Args:
            path: and query.
            most: bytes of its body.

        Raises:
            NoAnswerError: there is none, or it is larger.
        """
        return self._ask(path, most=most)

    def _ask(self, path: str, *, most: int) -> Answer:
        until = time.monotonic() + self.within
        try:
            with ExitStack() as open_ones:
                received = self._received(open_ones, path, most, until)
        except TimeoutError as error:
            because = f"{path} did not answer within {self.within:g} s"
            raise NoAnswerError(because) from error
        except OSError as error:
            raise NoAnswerError(f"{path} broke off ({error.strerror or error})") from error
        try:
            return _parsed(received, is_whole=most > 0)
        except (HTTPException, ValueError) as error:
            because = f"{path} cannot be read ({type(error).__name__})"
            raise NoAnswerError(because) from error

    def _received(self, open_ones: ExitStack, path: str, most: int, until: float) -> bytes:
        sock = open_ones.enter_context(self._connected(open_ones))
        sock.settimeout(_left(until))
        sock.sendall(self._request(path))
        received = bytearray()
        while not _is_over(received, most):
            if len(received) > _LARGEST_HEAD + most:
                raise NoAnswerError(f"{path} answered with more than {most + _LARGEST_HEAD} bytes")
            sock.settimeout(_left(until))
            if not (chunk := sock.recv(_CHUNK)):
                break
            received += chunk
        return bytes(received)

    def _connected(self, open_ones: ExitStack) -> socket.socket:
        host, _, port = self.where.rpartition(":")
        host = host.strip("[]")
        try:
            sock = socket.create_connection((host, int(port)), self.within)
        except TimeoutError:
            raise
        except OSError as error:
            raise NoAnswerError("it cannot be reached") from error
        if self.tls is None:
            return sock
        open_ones.enter_context(sock)
        try:
            return self.tls.wrap_socket(sock, server_hostname=host)
        except TimeoutError:
            raise
        except OSError as error:
            raise NoAnswerError(distrust(error), is_distrust=True) from error

    def _request(self, path: str) -> bytes:
        key = f"Authorization: Bearer {self.api_key}\r\n" if self.api_key else ""
        return (
            f"GET {path} HTTP/1.1\r\nHost: {self.where}\r\nAccept: */*\r\n"
            f"Accept-Encoding: identity\r\nConnection: close\r\n{key}\r\n"
        ).encode()


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _is_over(received: bytearray, most: int) -> bool:
    """Whether nothing more is to be waited for, though the connection may stay."""
    head, end, body = received.partition(_END_OF_HEAD)
    if not end:
        return False
    if not most:
        return True
    lines = [line.lower() for line in head.split(b"\r\n")]
    lengths = [
        line.partition(b":")[2].strip() for line in lines if line.startswith(b"content-length:")
    ]
    if lengths and lengths[0].isdigit():
        return len(body) >= int(lengths[0][:20])
    return any(line.startswith(b"transfer-encoding:") for line in lines) and (
        body.endswith(_END_OF_CHUNKS) or body == _END_OF_CHUNKS[2:]
    )


class _Sound:
    """What was received, as http.client reads it."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def _parsed(received: bytes, *, is_whole: bool) -> Answer:
    response = HTTPResponse(cast("socket.socket", _Sound(received)))
    response.begin()
    return Answer(status=response.status, body=response.read() if is_whole else b"")
