"""A request on its way to a child: partial sends, and bodies that lie in a file."""

import os
import socket
import ssl
from typing import BinaryIO

_JOINED_AT_MOST = 64 * 1024
"""Up to here one copy is cheaper than a second system call."""
_PER_TURN = 1024 * 1024
"""Bytes of a file sent before other clients get their turn."""


class Sending:
    """What is left to send. The socket does not block.

    Attributes:
        has_begun: the connection was made and took something.
    """

    __slots__ = ("_file", "_left", "_offset", "_rest", "has_begun")

    def __init__(self, head: bytes, body: bytes | BinaryIO) -> None:
        """Nothing is sent yet; a file is read from its start."""
        self.has_begun = False
        self._file: BinaryIO | None = None
        self._offset = 0
        self._left = 0
        self._rest: list[bytes | memoryview]
        if not isinstance(body, bytes):
            body.flush()
            self._file = body
            self._left = os.fstat(body.fileno()).st_size
            self._rest = [head]
        elif len(body) <= _JOINED_AT_MOST:
            self._rest = [head + body]
        else:
            self._rest = [head, body]

    def go_on(self, sock: socket.socket) -> bool:
        """Send what the socket takes now.

        Returns:
            True when everything is out.

        Raises:
            BlockingIOError: nothing could be sent, the connection is not made yet or its buffer is full.
            OSError: the connection is lost.
        """
        while self._rest:
            taken = sock.send(self._rest[0])
            self.has_begun = True
            if taken < len(self._rest[0]):
                self._rest[0] = memoryview(self._rest[0])[taken:]
                return False
            del self._rest[0]
        return self._file is None or self._send_file(sock, self._file)

    def _send_file(self, sock: socket.socket, file: BinaryIO) -> bool:
        if self._left:
            taken = self._send_piece(sock, file)
            if not taken:
                raise OSError("the spooled body of the request was cut short")
            self._offset += taken
            self._left -= taken
        return not self._left

    def _send_piece(self, sock: socket.socket, file: BinaryIO) -> int:
        if not isinstance(sock, ssl.SSLSocket):
            count = min(self._left, _PER_TURN)
            return os.sendfile(sock.fileno(), file.fileno(), self._offset, count)
        piece = os.pread(file.fileno(), min(self._left, _JOINED_AT_MOST), self._offset)
        return sock.send(piece) if piece else 0
