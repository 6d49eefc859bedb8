"""Jobs as a client of a listener meets them: a new one becomes an order, all else is read from disk or asked for."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from qmsup import places as folders
from qmsup.ids import ListenerName
from qmsup.listener import long_asks
from qmsup.listener.jobs import path_of_job
from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import (
    AGENTS,
    LOCKED,
    MAIN,
    Answer,
    app_of,
    call,
    content,
    environ_of,
    ordered,
    parsed,
    refused,
)

JOB = "qm0123456789ab-job_1"
AT = f"/sdcpp/v1/jobs/{JOB}"


@pytest.fixture
def document(places: Path) -> Path:
    path = folders.job_document(JOB)
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "x", "status": "generating"}')
    return path


def asked(method: str, target: str, listener: ListenerName = MAIN) -> Answer:
    answer = call(app_of(listener), environ_of(method, target))
    assert not isinstance(answer, RelayOrder)
    return answer


@contextmanager
def scheduler_process(answer: bytes) -> Iterator[list[bytes]]:
    """Its door, for one visit; what was asked."""
    heard: list[bytes] = []
    path = folders.jobs_socket()
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(socket.socket(socket.AF_UNIX)) as door:
        door.bind(str(path))
        door.listen()

        def serve() -> None:
            conn, _ = door.accept()
            with conn:
                heard.append(conn.recv(65536))
                conn.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield heard
        thread.join(10)


@pytest.mark.parametrize("kind", ["img_gen", "vid_gen"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_new_job_is_an_order_to_the_scheduler_process(
    places: Path, kind: str, slash: str
) -> None:
    body = b'{"model": "chat", "prompt": "a cat"}'

    order = ordered(body, target=f"/sdcpp/v1/{kind}{slash}", headers={"X-QM-Request-Id": "forged"})

    assert order.via == str(folders.jobs_socket())
    assert order.model == "chat"
    line, headers = parsed(order.head)
    assert line == f"POST /sdcpp/v1/{kind} HTTP/1.1"
    assert headers["x-qm-request-id"] == order.request
    assert content(order) == body


def test_by_way_of_its_models_server_it_is_the_same(places: Path) -> None:
    order = ordered(b"{}", target="/upstream/org/deep/model/sdcpp/v1/img_gen?x=1")

    assert (order.model, order.via) == ("org/deep/model", str(folders.jobs_socket()))
    line, headers = parsed(order.head)
    assert line == "POST /sdcpp/v1/img_gen?x=1 HTTP/1.1"
    assert headers["x-qm-request-id"] == order.request


def test_any_other_order_goes_where_its_grant_says() -> None:
    assert ordered(b'{"model": "chat"}').via == ""
    assert ordered(b"{}", target="/upstream/chat/sdcpp/v1/jobs/job_1/cancel").via == ""


def test_a_job_without_a_model_is_none() -> None:
    assert refused(b"{}", target="/sdcpp/v1/img_gen").code == "model_missing"


@pytest.mark.parametrize("listener", [MAIN, AGENTS])
@pytest.mark.parametrize("target", [AT, f"{AT}/", f"/upstream/chat{AT}"])
def test_a_job_is_read_from_its_document_on_any_port(
    document: Path, listener: ListenerName, target: str
) -> None:
    answer = asked("GET", target, listener)

    assert (answer.status, answer.body) == (200, document.read_bytes())
    assert answer.headers["Content-Type"] == "application/json"
    assert asked("HEAD", target, listener).body == b""


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/sdcpp/v1/jobs/job_1"),
        ("GET", "/sdcpp/v1/jobs/..%2Fjobs"),
        ("POST", "/sdcpp/v1/jobs/.../cancel"),
    ],
)
def test_what_is_no_job_is_not_found(document: Path, method: str, target: str) -> None:
    answer = asked(method, target)

    assert answer.status == 404
    assert answer.code in {"job_not_found", "not_found"}


@pytest.mark.parametrize("status", [200, 404])
def test_a_job_whose_document_the_disk_did_not_take_is_asked_for(places: Path, status: int) -> None:
    said = b'{"status": "generating"}'
    answer = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(said)) + said
    with scheduler_process(answer) as heard:
        got = asked("GET", AT)

    assert heard[0].startswith(f"GET {AT} HTTP/1.1\r\n".encode())
    assert got.status == status
    assert (got.body == said) is (status == 200)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_job_that_is_not_on_disk_is_not_denied_while_nobody_can_be_asked(
    places: Path, method: str
) -> None:
    """It may be one that a full disk did not take: whoever looks after it would give it up."""
    answer = asked(method, AT if method == "GET" else f"{AT}/cancel")

    assert (answer.status, answer.code) == (503, "scheduler_unavailable")
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.usefixtures("document")
def test_a_job_needs_the_ports_key() -> None:
    assert asked("GET", AT, LOCKED).code == "invalid_api_key"
    assert asked("POST", f"{AT}/cancel", LOCKED).code == "invalid_api_key"
    assert asked("POST", f"/upstream/chat{AT}/cancel", LOCKED).code == "invalid_api_key"


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("model", ["chat", "coder", None])
def test_a_key_reads_and_cancels_the_jobs_of_its_models(
    document: Path, model: str | None, verb: str
) -> None:
    if model is not None:
        folders.job_record(JOB).write_text(json.dumps({"model": model}))
    document.write_text('{"status": "completed"}')
    target = AT if verb == "GET" else f"{AT}/cancel"

    def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        answer = call(app_of(LOCKED), environ_of(verb, target, b"", headers))
        assert isinstance(answer, Answer)
        return answer.status

    assert status("sk-scoped") == (200 if model == "chat" else 404)
    assert status("sk-first") == (404 if model is None else 200)


def test_what_cannot_be_read_of_a_job_is_nobodys(document: Path) -> None:
    headers = {"Authorization": "Bearer sk-first"}
    for text in ("[]", "{", "[" * 100_000):
        folders.job_record(JOB).write_text(text)
        answer = call(app_of(LOCKED), environ_of("GET", AT, b"", headers))
        assert isinstance(answer, Answer)
        assert answer.code == "job_not_found"


@pytest.mark.usefixtures("document")
@pytest.mark.parametrize("status", [200, 409])
def test_to_cancel_one_is_asked_of_the_scheduler_process(status: int) -> None:
    said = b'{"error": "it renders"}'
    answer = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(said)) + said
    with scheduler_process(answer) as heard:
        got = asked("POST", f"{AT}/cancel")

    assert (got.status, got.body) == (status, said)
    assert heard[0].startswith(f"POST {AT}/cancel HTTP/1.1\r\n".encode())


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_what_is_over_is_cancelled_without_asking_anybody(document: Path, status: str) -> None:
    document.write_text(json.dumps({"status": status}))

    assert asked("POST", f"{AT}/cancel").body == document.read_bytes()


def test_a_word_in_a_message_is_no_status(document: Path) -> None:
    document.write_text(json.dumps({"error": 'of "status": "failed"', "status": "queued"}))

    assert asked("POST", f"{AT}/cancel").code == "scheduler_unavailable"


@pytest.mark.usefixtures("document")
def test_where_too_many_wait_already_nothing_is_cancelled() -> None:
    with ExitStack() as others:
        for _ in range(long_asks.MOST):
            others.enter_context(long_asks.place())

        assert asked("POST", f"{AT}/cancel").code == "queue_full"


@pytest.mark.usefixtures("document")
def test_without_a_scheduler_process_nothing_is_cancelled() -> None:
    answer = asked("POST", f"{AT}/cancel")

    assert (answer.status, answer.code) == (503, "scheduler_unavailable")
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"/upstream/a/b{AT}", AT),
        (f"/upstream/a/b{AT}/cancel/", f"{AT}/cancel/"),
        (f"/upstream/a{AT}/more", None),
        ("/upstream/a/sdcpp/v1/jobs/job_1", None),
        ("/upstream/a/sdcpp/v1/img_gen", None),
    ],
)
def test_what_a_path_to_a_server_says_of_jobs_of_ours(path: str, found: str | None) -> None:
    assert path_of_job(path) == found
