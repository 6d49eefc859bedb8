"""Small real servers in threads that behave as a test says: what a child may do, good and bad."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, bytes], None]


class Upstream:
    """A server that reads one request a connection and lets a script answer it.

    Attributes:
        where: `host:port`.
        requests: what came, one entry a connection, complete with its body.
        gone: set when a script saw its client close.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._server = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.where = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.requests: list[bytes] = []
        self.gone = threading.Event()
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._acceptor = threading.Thread(target=self._accept, name="upstream")
        self._acceptor.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(10)
        self._server.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def wait_for_client_to_leave(self, connection: socket.socket) -> None:
        """For scripts: block until the other side closed."""
        with suppress(OSError):
            while connection.recv(65536):
                pass
        self.gone.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._connections.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,), name="upstream")
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = read_request(connection)
            self.requests.append(request)
            self._script(connection, request)


def read_request(connection: socket.socket) -> bytes:
    """One request with its body, by Content-Length."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    pieces = [body]
    missing = length - len(body)
    while missing > 0:
        more = connection.recv(min(missing, 1 << 20))
        if not more:
            break
        pieces.append(more)
        missing -= len(more)
    return head + b"\r\n\r\n" + b"".join(pieces)


@contextmanager
def upstream(script: Script) -> Iterator[Upstream]:
    """A server for as long as the block."""
    server = Upstream(script)
    try:
        yield server
    finally:
        server.close()


def saying(answer: bytes) -> Script:
    """Answer with these bytes, and close."""

    def script(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(answer)

    return script


def in_two_parts(first: bytes, second: bytes, go_on: threading.Event) -> Script:
    """Answer with the first part, and with the second when told."""

    def script(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(first)
        go_on.wait(10)
        connection.sendall(second)

    return script


def plain(body: bytes, *, status: bytes = b"200 OK", extra: bytes = b"") -> bytes:
    """An answer with a Content-Length."""
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status,
        extra,
        len(body),
        body,
    )


def chunked(*pieces: bytes, ended: bool = True) -> bytes:
    """A chunked body."""
    data = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return data + (b"0\r\n\r\n" if ended else b"")


SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
