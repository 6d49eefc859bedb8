"""A job watcher at work, the fake servers that it asks, and a scheduler that gives leases as a test says."""

import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from typing import Any, TypeVar

import pykka
import requests
from typing_extensions import override

from qmsup import places
from qmsup.actors.job_door import open_door
from qmsup.actors.job_news import (
    BeginJob,
    ChildGone,
    EndJob,
    JobWish,
    KeepJob,
    KnownJobs,
    LeaseGiven,
)
from qmsup.actors.job_watcher import JobWatcher
from qmsup.ids import Incarnation, LeaseId, ModelId
from tests.support.box import until
from tests.support.rendering import FAKE_SD_SERVER
from tests.support.servers import free_port

PAINT = ModelId("paint")
FIRST = Incarnation(7)

W = TypeVar("W", bound=JobWish)


class SdServer:
    """A fake sd-server of its own, as the child of a test."""

    def __init__(self, *flags: str) -> None:
        self.port = free_port()
        command = [sys.executable, str(FAKE_SD_SERVER), "--listen-port", str(self.port), *flags]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._listens, within=30, what="a fake sd-server")

    @property
    def upstream(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.port}"

    def stats(self) -> dict[str, Any]:
        """What it saw."""
        told: dict[str, Any] = requests.get(f"http://{self.upstream}/stats", timeout=10).json()
        return told

    def finish(self) -> None:
        """End what it renders."""
        self.process.send_signal(signal.SIGUSR1)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(10)

    def _listens(self) -> bool:
        assert self.process.poll() is None, "it ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class _Door(HTTPConnection):
    @override
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(places.jobs_socket()))


class WatchedJobs:
    """The watcher, and both that it talks to.

    Attributes:
        wishes: all it told the scheduler, in order.
        known: the leases that each life of it knew at its start.
        gives: leases are given at once; else the test does.
        upstream: of the one child; "" = it has ended.
    """

    def __init__(self, upstream: str) -> None:
        self.wishes: list[JobWish] = []
        self.known: list[frozenset[LeaseId]] = []
        self.gives = True
        self.upstream = upstream
        self.breaks = 0
        self._pool = ThreadPoolExecutor(8)
        self._numbers = itertools.count(1)
        self._starting = threading.Lock()
        self.start()

    def start(self) -> None:
        """Begin a life of the watcher."""
        places.make_private(places.runtime_dir())
        door = open_door(places.jobs_socket())
        with self._starting:  # it may have wishes before it is known here
            self.ref: pykka.ActorRef[JobWatcher] = JobWatcher.start(
                door=door, report=self._hear, on_break=self._note_break
            )

    def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, request: str = ""
    ) -> tuple[int, Any]:
        """Bring a request to its door, and wait for the answer: a status, and what JSON says."""
        door = _Door("localhost")
        try:
            sent = b"" if body is None else json.dumps(body).encode()
            request = request or f"q-{next(self._numbers)}"
            headers = {"Content-Type": "application/json", "X-QM-Request-Id": request}
            headers["Host"] = self.upstream or "gone"  # as the grant named it
            with suppress(BrokenPipeError, ConnectionResetError):  # the answer came before
                door.request(method, path, sent, headers)
            answer = door.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            door.close()

    def asks(self, method: str, path: str, body: dict[str, Any]) -> Future[tuple[int, Any]]:
        """The same without waiting."""
        return self._pool.submit(self.ask, method, path, body)

    def begin(self, seconds: float = 600.0) -> str:
        """Begin a job; its id."""
        status, told = self.ask("POST", "/sdcpp/v1/img_gen", {"prompt": "x", "seconds": seconds})
        assert status == 202, told
        return str(told["id"])

    def told(self, kind: type[W]) -> list[W]:
        """The wishes of a kind, so far."""
        return [wish for wish in self.wishes if isinstance(wish, kind)]

    def document(self, job: str) -> dict[str, Any]:
        """What clients read of a job."""
        found: dict[str, Any] = json.loads(places.job_document(job).read_text())
        return found

    def until_status(self, job: str, status: str) -> dict[str, Any]:
        """Its document, once it says so."""
        until(lambda: self.document(job)["status"] == status, what=f"{status}: {job}")
        return self.document(job)

    def until_ended(self) -> None:
        """Every lease that was begun has ended."""

        def look() -> bool:
            begun = {wish.lease for wish in self.told(BeginJob)}
            return begun == {wish.lease for wish in self.told(EndJob)}

        until(look, what=f"the end of each lease: {self.wishes}")

    def give(self, lease: LeaseId) -> None:
        """Give a lease."""
        given = LeaseGiven(lease=lease, model=PAINT, incarnation=FIRST, upstream=self.upstream)
        self.ref.tell(given)

    def stop(self) -> None:
        """End a life of the watcher."""
        self.ref.stop()

    def close(self) -> None:
        """End all."""
        if self.ref.is_alive():
            self.stop()
        self._pool.shutdown()
        assert self.breaks == 0

    def _hear(self, wish: JobWish) -> None:
        if isinstance(wish, KnownJobs):
            self.known.append(wish.leases)
            return
        self.wishes.append(wish)
        if not self.gives or isinstance(wish, EndJob):
            return
        with self._starting:
            pass
        if isinstance(wish, KeepJob) and not self.upstream:
            self.ref.tell(ChildGone(lease=wish.lease))
        else:
            self.give(wish.lease)

    def _note_break(self) -> None:
        self.breaks += 1


@contextmanager
def watched(*flags: str) -> Iterator[tuple[WatchedJobs, SdServer]]:
    """A watcher, and a server with these flags."""
    server = SdServer(*flags)
    jobs = WatchedJobs(server.upstream)
    try:
        yield jobs, server
    finally:
        try:
            jobs.close()
        finally:
            server.close()
