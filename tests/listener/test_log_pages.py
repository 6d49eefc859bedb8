import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qmsup import places as where
from qmsup.ids import ModelId
from qmsup.listener import log_pages
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.watch import Watch
from tests.support.listener_app import AGENTS, Answer, app_of, call, environ_of


@pytest.fixture
def logs(places: Path) -> Path:
    for model, text in (("chat", "one\ntwo\n"), ("coder", "three\n"), ("gone", "secret\n")):
        log = where.log_file(ModelId(model))
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    return places / "state/logs"


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    ending = threading.Event()
    monkeypatch.setattr(log_pages, "ENDING", ending)
    monkeypatch.setattr(log_pages, "_LOOK_AGAIN", 0.01)
    return ending


def got(target: str, **more: Any) -> Answer:
    answer = call(app_of(**more), environ_of("GET", target))
    assert not isinstance(answer, RelayOrder)
    return answer


def streamed(target: str, client: socket.socket | None = None) -> Iterator[bytes]:
    """The parts of a streamed answer, as a server takes them; closed at the end."""
    environ = environ_of("GET", target)
    environ["gunicorn.socket"] = client
    body = app_of()(environ, lambda *_: None)
    assert not isinstance(body, RelayOrder | Watch)
    try:
        yield from body
    finally:
        body.close()  # type: ignore[attr-defined]  # WSGI promises it


def test_the_logs_of_all_models_of_a_port_have_headers(logs: Path) -> None:
    answer = got("/logs")

    assert answer.body == b"==> chat <==\none\ntwo\n\n==> coder <==\nthree\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert got("/logs", listener=AGENTS).body == b"==> coder <==\nthree\n"


@pytest.mark.parametrize("target", ["/logs?model=gpt-4o-mini", "/logs?model=chat"])
def test_one_model_is_named_in_the_query_by_any_of_its_names(target: str, logs: Path) -> None:
    assert got(target).body == b"one\ntwo\n"


def test_a_stream_may_name_its_model_in_the_query(logs: Path, ending: threading.Event) -> None:
    parts = streamed("/logs/stream?model=coder")

    assert [next(parts), next(parts)] == [b"", b"three\n"]
    parts.close()  # type: ignore[attr-defined]  # a generator has it


def test_without_a_log_there_is_nothing_to_see(places: Path) -> None:
    assert (got("/logs").status, got("/logs").body) == (200, b"")


def test_a_stream_shows_what_was_and_goes_on(logs: Path, ending: threading.Event) -> None:
    parts = streamed("/logs/stream/gpt-4o-mini")
    assert [next(parts), next(parts)] == [b"", b"one\ntwo\n"]

    with (logs / "chat.log").open("a") as log:
        log.write("new\n")

    assert next(parts) == b"new\n"
    ending.set()
    assert list(parts) == []


def test_a_stream_of_all_has_headers_where_the_model_changes(
    logs: Path, ending: threading.Event
) -> None:
    parts = streamed("/logs/stream")
    seen = [next(parts) for _ in range(3)]
    with (logs / "coder.log").open("a") as log:
        log.write("four\n")
    seen.append(next(parts))
    parts.close()  # type: ignore[attr-defined]  # it is a generator

    assert b"".join(seen) == b"==> chat <==\none\ntwo\n\n==> coder <==\nthree\nfour\n"


@pytest.mark.parametrize("how", ["closed", "half-closed", "closed here"])
def test_a_stream_ends_when_its_client_is_gone(
    logs: Path, ending: threading.Event, how: str
) -> None:
    client, served = socket.socketpair()
    parts = streamed("/logs/stream/chat", served)
    assert [next(parts), next(parts)] == [b"", b"one\ntwo\n"]

    match how:
        case "closed":
            client.close()
        case "half-closed":
            client.shutdown(socket.SHUT_WR)
        case _:
            served.close()

    assert list(parts) == []
    client.close()
    served.close()


def test_a_client_that_says_more_is_not_gone(logs: Path, ending: threading.Event) -> None:
    client, served = socket.socketpair()
    parts = streamed("/logs/stream/chat", served)
    assert [next(parts), next(parts)] == [b"", b"one\ntwo\n"]
    client.send(b"GET /health HTTP/1.1\r\n\r\n")

    with (logs / "chat.log").open("a") as log:
        log.write("new\n")

    assert next(parts) == b"new\n"
    parts.close()  # type: ignore[attr-defined]  # it is a generator
    client.close()
    served.close()


def test_streams_have_a_bound_and_give_their_place_back(
    logs: Path, ending: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "_free", threading.BoundedSemaphore(1))
    first = streamed("/logs/stream")
    next(first)

    assert (got("/logs/stream").status, got("/logs/stream").code) == (429, "queue_full")
    first.close()  # type: ignore[attr-defined]  # it is a generator
    second = streamed("/logs/stream")
    assert next(second) == b""
    second.close()  # type: ignore[attr-defined]  # the same


def test_a_head_of_a_stream_is_over_at_once(logs: Path) -> None:
    answer = call(app_of(), environ_of("HEAD", "/logs/stream"))

    assert not isinstance(answer, RelayOrder)
    assert (answer.status, answer.body) == (200, b"")


def test_an_unknown_model_has_no_log(logs: Path) -> None:
    assert got("/logs/stream/gone").code == "model_not_found"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_no_log_and_hides_no_other(
    logs: Path, ending: threading.Event, make: Callable[[Path], None]
) -> None:
    (logs / "chat.log").unlink()
    make(logs / "chat.log")

    assert got("/logs").body == b"==> coder <==\nthree\n"
    parts = streamed("/logs/stream")
    assert [next(parts), next(parts)] == [b"", b"==> coder <==\nthree\n"]
    parts.close()  # type: ignore[attr-defined]  # a generator has it
