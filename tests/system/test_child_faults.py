"""What becomes of requests when a model's program cannot start, dies, freezes, or finds no room for its log."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from tests.support.box import fake, real, serving, until
from tests.support.models import tiny_model

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def error_of(answer: requests.Response) -> tuple[int, str, str]:
    """Status, code and message of a refusal."""
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


def not_executable(folder: Path) -> dict[str, Any]:
    program = folder / "llama-server"
    program.write_text("#!/bin/sh\n")
    return {"cmd": f"{program} --port ${{PORT}}"}


def for_another_machine(folder: Path) -> dict[str, Any]:
    program = folder / "llama-server"
    program.write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xb7\0" + bytes(200))
    program.chmod(0o700)
    return {"cmd": f"{program} --port ${{PORT}}"}


def truncated(folder: Path) -> dict[str, Any]:
    model = folder / "half.gguf"
    model.write_bytes(tiny_model("alpha").read_bytes()[:5000])
    return _with_model(str(model))


def absent(folder: Path) -> dict[str, Any]:
    return _with_model(str(folder / "none.gguf"))


def _with_model(path: str) -> dict[str, Any]:
    entry = real("alpha")
    words = entry["cmd"].split()
    words[words.index("-m") + 1] = path
    return {**entry, "cmd": " ".join(words)}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda _: {"cmd": "/nowhere/llama-server --port ${PORT}"}, "there is no program"),
        (not_executable, "chmod +x"),
        (for_another_machine, "built for 64-bit aarch64"),
        (truncated, "check the file after -m"),
        (absent, "check the file after -m"),
    ],
    ids=["missing", "not-executable", "other-machine", "truncated", "no-model"],
)
def test_a_model_that_cannot_start_is_told_with_what_to_do(
    tmp_path: Path, broken: Callable[[Path], dict[str, Any]], words: str
) -> None:
    with serving({"bad": broken(tmp_path), "good": fake()}) as box:
        status, code, message = error_of(box.chat("bad"))

        assert (status, code) == (502, "model_load_failed")
        assert words in message
        assert box.chat("good").status_code == 200


def test_a_child_killed_while_it_loads_is_told_with_the_signal() -> None:
    with serving({"m": fake("--load-seconds 3600")}) as box, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(box.chat, "m")
        os.kill(int(until(lambda: box.model("m").get("pid")) or 0), signal.SIGKILL)

        status, code, message = error_of(asked.result(20))

        assert (status, code) == (502, "model_load_failed")
        assert "was killed by SIGKILL while loading" in message


def test_a_frozen_child_is_found_out_and_the_next_request_gets_another() -> None:
    with serving({"m": fake()}) as box:
        assert box.chat("m").status_code == 200
        pid = box.model("m")["pid"]

        os.kill(pid, signal.SIGSTOP)
        until(lambda: not psutil.pid_exists(pid), within=60)

        assert box.chat("m").status_code == 200
        assert box.model("m")["pid"] != pid
        assert "SIGSTOP" in box.log()


def test_a_log_without_room_costs_no_request() -> None:
    # A real server does not mind that its lines get lost; the fake one would end by that.
    with serving({"m": real("alpha")}) as box:
        log = box.folder / "state/logs/m.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.symlink_to("/dev/full")

        assert box.chat("m").status_code == 200
