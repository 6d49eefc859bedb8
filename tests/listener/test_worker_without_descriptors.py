"""A worker that can have no descriptor more: it takes nobody, without haste, until it has one again."""

import threading
from contextlib import ExitStack
from pathlib import Path

import psutil

from qmsup import places as our_places
from qmsup.wire.listening import Hello
from tests.support.granting import grant, granting_scheduler
from tests.support.gunicorns import Gunicorn, gunicorn, post
from tests.support.relaying import ending_context, read_all, read_until, wait_until
from tests.support.upstreams import SSE_HEAD, chunked, in_two_parts, upstream


def test_who_comes_then_waits_and_is_served_later_and_streams_go_on(places: Path) -> None:
    our_places.runtime_dir().mkdir(parents=True)
    go_on = threading.Event()
    script = in_two_parts(
        SSE_HEAD + chunked(b"data: 1\n\n", ended=False), chunked(b"data: 2\n\n"), go_on
    )
    with (
        ending_context(),
        granting_scheduler(our_places.scheduler_endpoint()) as scheduler,
        gunicorn(places / "log") as running,
        upstream(script) as child,
        ExitStack() as leaves,
    ):
        scheduler.hears(Hello)
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        stream = leaves.enter_context(running.connect())
        stream.sendall(post({"model": "m", "messages": [], "stream": True}))
        read_until(stream, b"data: 1")
        (worker,) = psutil.Process(running.process.pid).children()
        _, hard = worker.rlimit(psutil.RLIMIT_NOFILE)
        most = max(int(path.name) for path in Path(f"/proc/{worker.pid}/fd").iterdir()) + 4
        worker.rlimit(psutil.RLIMIT_NOFILE, (most, hard))

        idle = [leaves.enter_context(running.connect()) for _ in range(40)]
        running.logs("worker.cannot_accept")
        told = running.log().count("worker.cannot_accept")
        go_on.set()
        assert read_until(stream, b"data: 2")
        wait_until(lambda: running.log().count("worker.cannot_accept") > told + 1)

        for client in idle:
            client.close()
        wait_until(lambda: _is_served(running))


def _is_served(running: Gunicorn) -> bool:
    """With a page that asks nobody."""
    with running.connect() as client:
        client.sendall(b"GET /no/such/page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return b" 404 " in read_all(client)
