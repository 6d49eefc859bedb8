"""Another configuration reaches a worker while it serves: real gunicorn, and a scheduler that tells of versions."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from qmsup import places as our_places
from qmsup.wire.listening import Ask, Beat, Configured, Done, Hello, Loading
from tests.support.granting import GrantingScheduler, grant, granting_scheduler
from tests.support.gunicorns import Gunicorn, gunicorn, post
from tests.support.relaying import ending_context, read_until
from tests.support.upstreams import SSE_HEAD, chunked, in_two_parts, plain, saying, upstream

Both = tuple[Gunicorn, GrantingScheduler]
STREAM = {"model": "m", "messages": [], "stream": True}


@pytest.fixture(params=["in the loop", "in the pool"])
def both(places: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    parser = "auto" if request.param == "in the loop" else "python"
    our_places.runtime_dir().mkdir(parents=True)
    with (
        ending_context(),
        granting_scheduler(our_places.scheduler_endpoint()) as scheduler,
        gunicorn(places / "log", http_parser=parser) as running,
    ):
        scheduler.hears(Hello)
        yield running, scheduler


def version(places: Path, name: str, **keys: Any) -> Configured:
    """A version of the configuration, written where the worker can read it."""
    content = {
        "listeners": {"main": {"bind": "127.0.0.1:8080"}},
        "models": {"m": {"cmd": "llama-server -m m.gguf --port ${PORT}", "aliases": [name]}},
        **keys,
    }
    path = places / f"{name}.yaml"
    path.write_text(json.dumps(content))
    return Configured(version=name, path=str(path))


def test_another_version_counts_for_the_next_request_and_cuts_no_stream(
    both: Both, places: Path
) -> None:
    running, scheduler = both
    go_on = threading.Event()
    script = in_two_parts(SSE_HEAD + chunked(b"data: 1\n\n", ended=False), b"0\r\n\r\n", go_on)
    with upstream(script) as child, running.connect() as old, running.connect() as new:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        old.sendall(post(STREAM))
        read_until(old, b"data: 1")

        scheduler.say(version(places, "two", apiKeys=["k"], sendLoadingState=True))
        running.logs('"worker.configured", "version": "two"')

        new.sendall(post({**STREAM, "model": "two"}))
        assert read_until(new, b"}}").startswith(b"HTTP/1.1 401 ")
        scheduler.on_ask = lambda ask: [Loading(request=ask.request)]
        new.sendall(post({**STREAM, "model": "two"}, headers="Authorization: Bearer k\r\n"))
        read_until(new, b": qm-status: loading")  # which the first version says nothing of
        assert scheduler.hears(Ask, count=2).model == "m"
        go_on.set()
        read_until(old, b"0\r\n\r\n")
        scheduler.hears(Done)


def test_a_version_that_cannot_be_used_changes_nothing(both: Both, places: Path) -> None:
    running, scheduler = both
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]

        scheduler.say(version(places, "bad", models={"m": {}}))
        running.logs("models.m.cmd: ")
        scheduler.say(version(places, "lacking", listeners={"other": {"bind": "127.0.0.1:8081"}}))
        running.logs("listener main is not in it")
        scheduler.say(Configured(version="gone", path=str(places / "gone.yaml")))
        running.logs("cannot be read")

        client.sendall(post(STREAM))
        read_until(client, b"hello")
    scheduler.hears(Beat, lambda beat: beat.configured == "gone")


def test_a_worker_that_is_started_anew_begins_with_what_is_in_force(
    both: Both, places: Path
) -> None:
    running, scheduler = both
    our_places.make_private(our_places.config_copies())
    copy = Path(version(places, "two", apiKeys=["k"]).path)
    copy.rename(our_places.config_copies() / "two.yaml")

    (worker,) = psutil.Process(running.process.pid).children()
    worker.kill()
    scheduler.hears(Hello, count=2)

    with running.connect() as client:
        client.sendall(post(STREAM))
        assert read_until(client, b"}}").startswith(b"HTTP/1.1 401 ")
    assert "worker.configured" not in running.log(), "nobody told it of that version"


def test_a_copy_that_a_new_worker_cannot_use_leaves_it_what_its_master_has(
    both: Both, places: Path
) -> None:
    running, scheduler = both
    our_places.make_private(our_places.config_copies())
    (our_places.config_copies() / "bad.yaml").write_text("models: {m: {}}")

    (worker,) = psutil.Process(running.process.pid).children()
    worker.kill()
    scheduler.hears(Hello, count=2)

    running.logs("models.m.cmd: ")
    with upstream(saying(plain(b"hello"))) as child, running.connect() as client:
        scheduler.on_ask = lambda ask: [grant(ask, child.where)]
        client.sendall(post(STREAM))
        read_until(client, b"hello")


def test_of_two_versions_the_later_one_stays(both: Both, places: Path) -> None:
    running, scheduler = both

    scheduler.say(version(places, "two"), version(places, "three"))

    running.logs('"worker.configured", "version": "three"')
    with running.connect() as client:
        client.sendall(post({**STREAM, "model": "two"}))
        assert read_until(client, b"}}").startswith(b"HTTP/1.1 404 ")
    scheduler.hears(Beat, lambda beat: beat.configured == "three")
