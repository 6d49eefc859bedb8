"""Who looks on all the time: a client of each port's `/api/events`, which comes again whenever it is cut off."""

import contextlib
import socket
import threading

_REQUEST = b"GET /api/events HTTP/1.1\r\nHost: box\r\nAccept: text/event-stream\r\n\r\n"
_PATIENCE_S = 1.0
_PAUSE_S = 0.5


class Onlooker:
    """One thread. What it is told it only counts."""

    def __init__(self, port: int) -> None:
        """Look on from now until closed.

        Args:
            port: on 127.0.0.1.
        """
        self.events = 0
        self.visits = 0
        """How often it was let in."""
        self._port = port
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onlooker")
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self._port), _PATIENCE_S) as wire,
            ):
                wire.sendall(_REQUEST)
                self._listen(wire)
            self._is_over.wait(_PAUSE_S)

    def _listen(self, wire: socket.socket) -> None:
        is_in = False
        while not self._is_over.is_set():
            try:
                part = wire.recv(65536)
            except TimeoutError:
                continue
            if not part:
                return
            self.visits += not is_in
            is_in = True
            self.events += part.count(b"data:")
