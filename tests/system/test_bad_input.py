"""What a person or a client gets wrong: each is told what to do, and nothing is left behind."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.box import Box, real, serving, until
from tests.support.servers import free_port

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    junk = tmp_path_factory.mktemp("junk") / "junk.gguf"
    junk.write_bytes(b"this is no model" * 100)
    models = {  # a model that fails is in back-off for whoever asks next: one for each test
        "alpha": real("alpha"),
        "no-binary": {"cmd": "/nonexistent/llama-server --port ${PORT}", "estVramGB": 1},
        "no-file": {**real("alpha"), "cmd": real("alpha")["cmd"].replace("alpha-", "gone-")},
        "junk": {**real("alpha"), "cmd": real("alpha")["cmd"].split(" -m ")[0] + f" -m {junk}"},
        "more-junk": {
            **real("alpha"),
            "cmd": real("alpha")["cmd"].split(" -m ")[0] + f" -m {junk}",
        },
        "gone": {**real("alpha"), "cmd": real("alpha")["cmd"].replace("alpha-", "gone-")},
    }
    with serving(models, vramBudgetGB=8) as box:
        yield box


def _error(answer: requests.Response) -> dict[str, Any]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return dict(error)


def test_an_unknown_model_is_named_with_what_is_like_it(box: Box) -> None:
    answer = box.chat("alpah")

    assert answer.status_code == 404
    assert _error(answer)["code"] == "model_not_found"
    assert "alpha" in _error(answer)["message"]


BODIES = {
    "malformed": (b'{"model": "alpha",', 400, "bad_request"),
    "no object": (b"[1, 2]", 400, "bad_request"),
    "two models": (b'{"model": "alpha", "model": "bravo"}', 400, "bad_request"),
    "no model": (b'{"messages": []}', 400, "model_missing"),
    "no UTF-8": (b'{"model": "\xff"}', 400, "bad_request"),
    "deep": (b'{"model": "alpha", "x": ' + b"[" * 100_000, 400, "bad_request"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_and_the_connection_lives_on(box: Box, name: str) -> None:
    body, status, code = BODIES[name]
    with requests.Session() as session:
        answer = session.post(box.url("/v1/chat/completions"), data=body, timeout=30)
        assert (answer.status_code, _error(answer)["code"]) == (status, code)
        assert session.get(box.url("/v1/models"), timeout=30).status_code == 200


FAILING = {
    "no-binary": ("/nonexistent/llama-server", 502),
    "no-file": ("gone-", 502),
    "junk": ("junk.gguf", 502),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_model_that_cannot_load_says_why(box: Box, name: str) -> None:
    words, status = FAILING[name]

    answer = box.chat(name)

    assert answer.status_code == status
    assert words in _error(answer)["message"]
    assert box.model(name)["pid"] is None


def test_a_failed_load_is_not_tried_again_at_once(box: Box) -> None:
    box.chat("more-junk")
    answer = box.chat("more-junk")

    assert answer.status_code == 503
    assert _error(answer)["code"] == "model_unavailable"
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_failed_load_leaves_the_others_alone(box: Box) -> None:
    assert box.chat("alpha").status_code == 200
    box.chat("gone")

    assert box.model("alpha")["state"] == "ready"


def test_an_unknown_path_and_a_wrong_method_are_told(box: Box) -> None:
    assert requests.get(box.url("/v1/nothing"), timeout=10).status_code == 404
    wrong = requests.get(box.url("/v1/chat/completions"), timeout=10)
    assert wrong.status_code == 405
    assert "POST" in wrong.headers["Allow"]


def test_garbage_on_the_port_is_no_concern_of_others(box: Box) -> None:
    for garbage in (
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\r\n" * 50,
    ):
        with socket.create_connection(("127.0.0.1", box.ports["main"]), timeout=10) as wire:
            wire.sendall(garbage)
            wire.shutdown(socket.SHUT_WR)
            wire.recv(4096)

    assert requests.get(box.url("/health"), timeout=10).status_code == 200


def _serve(folder: Path, config: object) -> subprocess.CompletedProcess[str]:
    path = folder / "config.yaml"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    env = {
        **os.environ,
        "QMSUP_RUNTIME_DIR": str(folder / "run"),
        "QMSUP_STATE_DIR": str(folder / "state"),
    }
    return subprocess.run(
        [sys.executable, "-m", "qmsup", "serve", "-c", path],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_unknown_key_is_named_with_its_line_and_a_suggestion(tmp_path: Path) -> None:
    ran = _serve(tmp_path, "models:\n  a:\n    cmd: llama-server -m a.gguf\n    estVramGb: 5\n")

    assert ran.returncode == 2
    assert "config.yaml:4: models.a.estVramGb" in ran.stderr
    assert "estVramGB" in ran.stderr
    assert not (tmp_path / "state").exists()


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = _serve(
            tmp_path,
            {
                "listeners": {"main": {"bind": f"127.0.0.1:{port}"}},
                "models": {"a": {"cmd": "llama-server -m a.gguf"}},
            },
        )

    assert ran.returncode == 2
    assert f"listeners.main.bind: cannot listen on 127.0.0.1:{port}" in ran.stderr


def test_a_second_scheduler_on_the_same_state_is_told_whose_it_is(box: Box) -> None:
    ran = box.run("scheduler")

    assert ran.returncode == 2
    pid = box.told("status")["pid"]
    assert f"pid {pid}" in ran.stderr


def test_verbs_without_a_scheduler_say_so(tmp_path: Path) -> None:
    env = {**os.environ, "QMSUP_RUNTIME_DIR": str(tmp_path)}
    for verb in (["ps"], ["status"], ["unload"], ["load", "a"]):
        ran = subprocess.run(
            [
                sys.executable,
                "-m",
                "qmsup",
                *verb,
                *(["--timeout", "1"] if verb[0] == "load" else []),
            ],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 3, (verb, ran.stderr)
        assert "qmsup serve" in ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1


def test_a_model_s_port_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    del tmp_path
    start = free_port()
    with (
        socket.create_server(("127.0.0.1", start)),
        serving({"alpha": real("alpha")}, startPort=start) as box,
    ):
        assert box.chat("alpha").status_code == 200
        assert box.model("alpha")["port"] != start
        until(lambda: box.states()["alpha"] == "ready")
