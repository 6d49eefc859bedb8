"""Counts, while everything goes on, how many models' servers live: what they claim together must fit the budget."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

_LOOK_EVERY_S = 0.05
_SERVERS = (b"/fakes/child.py", b"/fakes/sd_server.py")


class Claims:
    """Watches the children of a box by the kernel's word, whatever its scheduler believes. One thread."""

    def __init__(self, serve: int, most: int) -> None:
        """Look on until closed.

        Args:
            serve: the pid of the box's root. It is the parent of all whose scheduler died.
            most: so many servers fit side by side.
        """
        self.most_seen = 0
        self.looks = 0
        self.excess: str = ""
        """The servers that were there at one time and did not fit; "" = it never came to that."""
        self._serve = serve
        self._most = most
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claims")
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_EVERY_S):
            seen = set(_servers(self._serve))
            together = [pid for pid in seen if _claims(pid)]  # each of them was there all the time
            self.looks += 1
            self.most_seen = max(self.most_seen, len(together))
            if len(together) > self._most and not self.excess:
                self.excess = f"at {time.monotonic():.2f} s: " + ", ".join(map(_title, together))


def _servers(serve: int) -> Iterator[int]:
    """Of the root and of each scheduler; the pids of what they started of ours."""
    for pid in _children(serve):
        command = _command(pid)
        if b"\0scheduler\0" in command:
            yield from (child for child in _children(pid) if _is_server(_command(child)))
        elif _is_server(command):
            yield pid


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _is_server(command: bytes) -> bool:
    return any(name in command for name in _SERVERS)


def _claims(pid: int) -> bool:
    """Whether it lives: what is dead, buried or not, has no memory any more."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def _title(pid: int) -> str:
    return f"{pid} {_command(pid)[-60:].replace(bytes(1), b' ').decode(errors='replace')}"
