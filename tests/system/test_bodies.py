"""Bodies on their way through a whole box: large ones, compressed ones, changed ones."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from backports import zstd

from tests.support.box import Box, fake, real, serving, until
from tests.support.upstreams import SSE_HEAD, chunked, upstream

pytestmark = pytest.mark.system

_MIB = 1024 * 1024
_UPLOAD = 200 * _MIB
_MAY_GROW = 24 * _MIB


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "alpha": real("alpha"),
        "org/deep:tag": fake("--name deep"),
        "short": fake(
            "--name short",
            filters={
                "stripParams": "stream",
                "setParams": {"max_tokens": 2},
                "setParamsByID": {"${MODEL_ID}:long": {"max_tokens": 7}},
            },
        ),
    }
    with serving(models, vramBudgetGB=64) as box:
        yield box


def _pieces(size: int) -> Iterator[bytes]:
    yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    for _ in range(size // _MIB):
        yield b"\r\n--x" * (_MIB // 5)
    yield b'\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\norg/deep:tag\r\n--b--\r\n'


def _anonymous(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024


@contextmanager
def _watched(pid: int) -> Iterator[list[int]]:
    """What the process has in memory of its own, looked at all the time."""
    seen = [_anonymous(pid)]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.01):
            seen.append(_anonymous(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


@pytest.mark.timeout(120)
def test_an_upload_of_hundreds_of_megabytes_is_never_in_memory(box: Box) -> None:
    assert box.chat("org/deep:tag").status_code == 200
    (worker,) = box.listener().children()

    with _watched(worker.pid) as seen:
        answer = requests.post(
            box.url("/upstream/org/deep:tag/nowhere"), data=_pieces(_UPLOAD), timeout=60
        )
        form = requests.post(
            box.url("/v1/audio/transcriptions"),
            data=_pieces(_UPLOAD),
            headers={"Content-Type": "multipart/form-data; boundary=b"},
            timeout=60,
        )

    # The child has no such path; what matters is that it was asked.
    assert (answer.headers["X-QM-Model"], form.headers["X-QM-Model"]) == ("org/deep:tag",) * 2
    assert max(seen) - seen[0] < _MAY_GROW, [value // _MIB for value in (seen[0], max(seen))]


def _a_gigabyte_of_events(connection: socket.socket, _request: bytes) -> None:
    piece = chunked(b"data: " + b"x" * (_MIB - 8) + b"\n\n", ended=False)
    connection.sendall(SSE_HEAD)
    for _ in range(1024):
        connection.sendall(piece)
    connection.sendall(b"0\r\n\r\n")


@pytest.mark.timeout(120)
def test_a_stream_of_a_gigabyte_is_never_in_memory() -> None:
    with upstream(_a_gigabyte_of_events) as far:
        peers = {"far": {"proxy": f"http://{far.where}", "models": ["endless"]}}
        with serving({}, peers=peers) as box:
            (worker,) = box.listener().children()
            body = {"model": "endless", "stream": True, "messages": []}
            with (
                _watched(worker.pid) as seen,
                requests.post(
                    box.url("/v1/chat/completions"), json=body, stream=True, timeout=60
                ) as answer,
            ):
                length = sum(len(piece) for piece in answer.iter_content(_MIB))

    assert length == 1024 * _MIB
    assert max(seen) - seen[0] < _MAY_GROW, [value // _MIB for value in (seen[0], max(seen))]


def test_filters_reach_the_child(box: Box) -> None:
    def words(model: str) -> int:
        answer = box.chat(model, stream=True, max_tokens=50)
        assert answer.headers["Content-Type"].startswith("application/json")
        return len(answer.json()["choices"][0]["message"]["content"].split())

    assert (words("short"), words("short:long")) == (2, 7)


def test_a_real_server_takes_what_was_compressed(box: Box) -> None:
    told = {"model": "alpha", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    answer = requests.post(
        box.url("/v/chat/completions/"),
        data=zstd.compress(json.dumps(told).encode()),
        headers={"Content-Encoding": "zstd", "Content-Type": "application/json"},
        timeout=30,
    )

    assert answer.status_code == 200
    assert answer.json()["choices"]


def test_a_model_s_own_server_can_be_reached(box: Box) -> None:
    assert box.chat("alpha").status_code == 200
    props = requests.get(box.url("/upstream/alpha/props"), timeout=10)
    looked = requests.get(box.url("/props?model=alpha"), timeout=10)

    assert props.json()["total_slots"] == looked.json()["total_slots"] == 2
    head = requests.head(box.url("/upstream/alpha/health"), timeout=10)
    assert head.headers["X-QM-Model"] == "alpha"
    echo = requests.get(box.url("/upstream/org%2Fdeep:tag/echo?a=%2F&b"), timeout=10).json()
    assert echo["target"] == "/echo?a=%2F&b"


def test_looking_at_a_model_does_not_load_it(box: Box) -> None:
    box.run("unload", "alpha")
    until(lambda: box.states()["alpha"] != "ready")

    answer = requests.get(box.url("/props?model=alpha"), timeout=10)

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "model_not_loaded"
    assert box.model("alpha")["pid"] is None
