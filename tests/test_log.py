import json
import logging
import os
import sys
import time
from collections.abc import Iterator

import pytest

from qmsup import log
from qmsup.log import Log


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("qmsup")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_a_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up(style="text")

    Log("scheduler").info("swap.started", model="b", evicts=None, because="budget is full", s=0.5)

    line = capsys.readouterr().err
    assert line.endswith('info    swap.started model=b because="budget is full" s=0.500\n')


def test_a_line_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up(style="json")

    Log("scheduler").warning("swap.slow", model="b", waited_s=1.5)

    line = json.loads(capsys.readouterr().err)
    del line["time"]
    assert line == {
        "level": "warning",
        "logger": "qmsup.scheduler",
        "event": "swap.slow",
        "model": "b",
        "waited_s": 1.5,
    }


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_exception_comes_with_its_traceback(
    style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(style=style)

    try:
        int("no number")
    except ValueError:
        Log("core").exception("handle.failed")

    assert "ValueError: invalid literal" in capsys.readouterr().err


def test_of_what_a_peer_sends_without_end_few_lines_are_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.set_up(style="json")
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    told = Log("gateway")

    for number in range(1000):
        told.warning_of_a_peer("worker.unreadable", number=number)
    told.warning_of_a_peer("worker.differs")
    now += 1.5
    told.warning_of_a_peer("worker.unreadable", number=1000)

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == [
        *["worker.unreadable"] * 10,
        "worker.differs",
        "worker.unreadable",
    ]
    assert (lines[-1]["number"], lines[-1]["left_out"]) == (1000, 990)


def test_of_what_fails_without_end_few_lines_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.set_up(style="json")
    told = Log("feed")

    for _ in range(1000):
        try:
            int("no number")
        except ValueError:
            told.exception_again("actor.broke")

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert 10 <= len(lines) < 20
    assert "ValueError" in lines[0]["trace"]


def test_what_is_below_the_level_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up(level="warning", style="text")

    Log("core").debug("x")
    Log("core").info("y")
    Log("core").error("z")

    assert capsys.readouterr().err.split()[1:] == ["error", "z"]


def test_without_a_terminal_lines_are_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up()

    Log("core").info("started")

    assert json.loads(capsys.readouterr().err)["event"] == "started"


def test_who_reads_no_more_holds_up_nobody_and_is_told_how_much_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe, os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        log.set_up(style="text")
        written = Log("relay")

        for _ in range(2000):
            written.info("request", path="x" * 200)  # 400 kB; a pipe holds 64
        taken = pipe.read(1024 * 1024).count(b"\n")
        written.info("request")
        left_out, last = pipe.read(4096).decode().splitlines()

    assert f"log.left_out lines={2000 - taken} because=" in left_out
    assert last.endswith("request")
    assert 0 < taken < 2000


def test_a_reader_that_is_gone_is_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    log.set_up(style="text")

    Log("relay").info("request")

    with pytest.raises(BrokenPipeError):
        stream.close()
