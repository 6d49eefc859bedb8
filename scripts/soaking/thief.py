"""A program that has what a child was about to have: it listens on the child's port before the child does."""

import contextlib
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PORT = re.compile(rb"--(?:listen-)?port\0(\d+)\0")
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
_LOOK_EVERY_S = 0.003


class Thief:
    """Steals the next port that a child is started on, and answers there as if it were ready. Reads what it is told.

    Attributes:
        stolen: the port, once there is one.
        heard: the first bytes of each connection: nobody's prompt should ever be among them.
    """

    def __init__(self, scheduler: Callable[[], int | None], *, shares: bool) -> None:
        """Lie in wait.

        Args:
            scheduler: the pid of the process whose children are robbed.
            shares: listen with SO_REUSEPORT, as some servers do: then both have the port.
        """
        self.stolen: int | None = None
        self.heard: list[bytes] = []
        self._scheduler = scheduler
        self._pid = scheduler()
        self._known = {child for child, _ in started_by(self._pid)} if self._pid else set[int]()
        self._shares = shares
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thief")
        self._thread.start()

    def give_back(self) -> None:
        """The port is free again."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        pid, known = self._pid, self._known
        while not self._is_over.is_set():
            time.sleep(_LOOK_EVERY_S)
            pid = pid if pid and Path(f"/proc/{pid}").exists() else self._scheduler()
            for child, port in started_by(pid) if pid else ():
                if child not in known and port is not None:
                    known.add(child)
                    with contextlib.suppress(OSError):  # it was faster
                        self._listen(port)
                        return

    def _listen(self, port: int) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._shares:
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            door.bind(("127.0.0.1", port))
            door.listen(16)
            self.stolen = port
            while not self._is_over.is_set():
                if select.select([door], [], [], 0.05)[0]:
                    visitor, _ = door.accept()
                    with visitor, contextlib.suppress(OSError):
                        visitor.settimeout(0.2)
                        self.heard.append(visitor.recv(200))
                        visitor.sendall(_ANSWER)


def started_by(scheduler: int) -> Iterator[tuple[int, int | None]]:
    """The children of a process, each with the port in its command; None = it has none, or not yet."""
    for task in Path(f"/proc/{scheduler}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for word in task.read_text().split():
                found = _PORT.search(Path(f"/proc/{word}/cmdline").read_bytes())
                yield int(word), int(found[1]) if found else None
