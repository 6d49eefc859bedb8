"""A child with canned answers, for measuring what stands in front of it: `python -m scripts.benchmark.upstream`.

One epoll loop. `POST` anything: as the `Wish` in the body says. `GET /health`: 503 while it "loads", then
200. `GET /count`: open and aborted streams. `GET /release`: ends everything that waits at the gate. Notes
about itself go to a file, one JSON object a line, with monotonic times, which all processes share.
"""

import argparse
import errno
import heapq
import itertools
import json
import select
import socket
import time
from pathlib import Path

from scripts.benchmark import canned, wishes
from scripts.benchmark.wishes import Wish

_BURST = 32  # events of one full-speed stream in a row, so that the streams take turns
_AWAY = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Link:
    """One connection and the answer under way on it."""

    __slots__ = ("closes", "gap", "got", "left", "out", "sock", "tag", "waits")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.got = b""  # of a request not complete yet
        self.out = b""  # what the socket did not take
        self.left = 0  # events still to send
        self.gap = 0  # ns between events; 0 = full speed
        self.waits = False  # at the gate
        self.closes = False
        self.tag = 0


class Upstream:
    """The whole child."""

    def __init__(self, port: int, notes: Path | None, load_s: float) -> None:
        self._notes = notes.open("a", buffering=1) if notes else None
        self._links: dict[int, Link] = {}
        self._paced: list[
            tuple[int, int, int, Link]
        ] = []  # when, then what breaks a tie, descriptor
        self._ticket = itertools.count()
        self._eager: set[int] = set()  # full-speed streams whose socket takes more
        self._asked = False
        self.aborted = 0
        self._loaded_at = time.monotonic_ns() + int(load_s * 1e9)
        self._loading = True
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", port), backlog=4096)
        self._listening.settimeout(0)
        self._epoll = select.epoll()
        self._epoll.register(self._listening, select.EPOLLIN)

    def run(self) -> None:
        """Serves until it is killed."""
        while True:
            for fd, flags in self._epoll.poll(self._patience(), 512):
                if fd == self._listening.fileno():
                    self._accept()
                elif link := self._links.get(fd):
                    self._touch(fd, link, flags)
            if self._loading and time.monotonic_ns() >= self._loaded_at:
                self._loading = False
                self._note("ready", port=self._port)
            if self._paced:
                self._pace()
            for fd in tuple(self._eager):
                self._rush(fd)

    def _patience(self) -> float:
        if self._eager:
            return 0.0
        due = self._paced[0][0] if self._paced else None
        if self._loading:
            due = min(due or self._loaded_at, self._loaded_at)
        return -1.0 if due is None else max(0.0, (due - time.monotonic_ns()) / 1e9)

    def _note(self, what: str, **fields: int) -> None:
        if self._notes:
            self._notes.write(
                json.dumps({"what": what, "at": time.monotonic_ns(), **fields}) + "\n"
            )

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EMFILE):
                    return
                raise
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links[sock.fileno()] = Link(sock)
            self._epoll.register(sock, select.EPOLLIN | select.EPOLLRDHUP)

    def _touch(self, fd: int, link: Link, flags: int) -> None:
        if flags & _AWAY:
            self._drop(fd, link)
            return
        if flags & select.EPOLLOUT and self._flush(fd, link) and link.left and not link.gap:
            self._eager.add(fd)
        if flags & select.EPOLLIN:
            try:
                got = link.sock.recv(65536)
            except BlockingIOError:
                return
            except ConnectionError:
                got = b""
            if not got:
                self._drop(fd, link)
                return
            link.got += got
            self._read(fd, link)

    def _drop(self, fd: int, link: Link) -> None:
        if link.left or link.waits:
            self.aborted += 1
            self._note("aborted", tag=link.tag)
        self._links.pop(fd, None)
        self._eager.discard(fd)
        link.left = 0
        link.sock.close()

    def _read(self, fd: int, link: Link) -> None:
        head, found, rest = link.got.partition(b"\r\n\r\n")
        if not found:
            return
        low = head.lower()
        length = int(low.partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0] or b"0")
        if len(rest) < length:
            return
        link.got = rest[length:]
        link.closes = b"\r\nconnection: close" in low
        if head.startswith(b"POST"):
            self._post(fd, link, wishes.read(rest[:length]))
        else:
            self._get(fd, link, head.split(b" ", 2)[1])

    def _get(self, fd: int, link: Link, path: bytes) -> None:
        if self._loading:
            self._whole(fd, link, canned.LOADING, 503)
        elif path == b"/count":
            open_now = sum(1 for each in self._links.values() if each.left or each.waits)
            self._whole(fd, link, b'{"open":%d,"aborted":%d}' % (open_now, self.aborted))
        elif path == b"/release":
            self._release()
            self._whole(fd, link, b"{}")
        else:
            self._whole(fd, link, b'{"status":"ok"}')

    def _post(self, fd: int, link: Link, wish: Wish) -> None:
        if not self._asked:
            self._asked = True
            self._note("asked")
        link.tag, link.left, link.waits = wish.tag, 0, wish.gate
        if not wish.events:
            if not wish.gate:
                self._whole(fd, link, canned.ANSWER)
            return
        head = canned.stream_head(closes=link.closes)
        if wish.gate:
            self._send(fd, link, head + canned.event(time.monotonic_ns()))
            link.left = 1
            return
        link.left = wish.events
        self._send(fd, link, head)
        if wish.hz:
            link.gap = 10**9 // wish.hz
            phase = (
                fd * 7919 * 1000 % link.gap
            )  # streams that started together do not tick together
            heapq.heappush(self._paced, (time.monotonic_ns() + phase, next(self._ticket), fd, link))
        else:
            link.gap = 0
            self._eager.add(fd)

    def _release(self) -> None:
        for fd, link in tuple(self._links.items()):
            if not link.waits:
                continue
            link.waits = False
            if link.left:
                link.left = 0
                self._finish(fd, link)
            else:
                self._whole(fd, link, canned.ANSWER)

    def _pace(self) -> None:
        now = time.monotonic_ns()
        while self._paced and self._paced[0][0] <= now:
            due, _, fd, link = heapq.heappop(self._paced)
            if not link.left:
                continue  # it was dropped
            self._send(fd, link, canned.event(time.monotonic_ns()))
            link.left -= 1
            if link.left:
                heapq.heappush(self._paced, (due + link.gap, next(self._ticket), fd, link))
            else:
                self._finish(fd, link)

    def _rush(self, fd: int) -> None:
        link = self._links.get(fd)
        if not link or link.out:
            self._eager.discard(fd)
            return
        for _ in range(min(_BURST, link.left)):
            link.left -= 1
            if not self._send(fd, link, canned.event(time.monotonic_ns())):
                self._eager.discard(fd)
                break
        if not link.left:
            self._eager.discard(fd)
            self._finish(fd, link)

    def _finish(self, fd: int, link: Link) -> None:
        if self._send(fd, link, canned.LAST_CHUNK) and link.closes:
            self._drop(fd, link)

    def _whole(self, fd: int, link: Link, body: bytes, status: int = 200) -> None:
        answer = canned.whole(body, status=status, closes=link.closes)
        if self._send(fd, link, answer) and link.closes:
            self._drop(fd, link)

    def _send(self, fd: int, link: Link, data: bytes) -> bool:
        """True when the socket took all; else the rest goes out when it takes more."""
        if link.out:
            link.out += data
            return False
        try:
            sent = link.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False  # the loop sees the hang-up too, and drops it
        if sent == len(data):
            return True
        link.out = data[sent:]
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLOUT)
        return False

    def _flush(self, fd: int, link: Link) -> bool:
        rest, link.out = link.out, b""
        if rest and not self._send(fd, link, rest):
            return False
        self._epoll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
        if link.closes and not link.left and not link.waits:
            self._drop(fd, link)
        return True


def main() -> None:
    """`--port N [--notes FILE] [--load-ms N]`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--load-ms", type=float, default=0.0)
    given = parser.parse_args()
    Upstream(given.port, given.notes, given.load_ms / 1000).run()


if __name__ == "__main__":
    main()
