from pathlib import Path

import pytest

from qmsup.processes import log_watch
from qmsup.processes.log_watch import LogWatch


def test_a_line_is_seen_once_it_is_there(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text("ready on port 1, of the start before\n")
    watch = LogWatch(log, log.stat().st_size, r"ready on port \d+")

    seen = [watch.saw()]
    for text in ("loading\n", "almost rea", "dy on port 5\nmore\n"):
        with log.open("a") as file:
            file.write(text)
        seen.append(watch.saw())

    assert seen == [False, False, False, True]


@pytest.mark.parametrize("text", ["ready", "50%\rready\r", "\xff ready\n"])
def test_a_line_needs_no_end_and_no_good_text(tmp_path: Path, text: str) -> None:
    log = tmp_path / "m.log"
    log.write_bytes(text.encode("latin-1"))

    assert LogWatch(log, 0, "ready$").saw()


def test_a_log_that_grows_fast_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_watch, "_CHUNK", 4)
    log = tmp_path / "m.log"
    log.write_text("a long way to ready\n")
    watch = LogWatch(log, 0, "to ready")

    assert [watch.saw() for _ in range(5)] == [False, False, False, False, True]


def test_of_a_long_line_the_beginning_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text("x" * 5000 + "ready\n" + "ready" + "x" * 5000 + "\n")

    assert LogWatch(log, 0, "^ready").saw()
    assert not LogWatch(log, 0, "xready").saw()


def test_of_a_line_without_an_end_the_end_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text("x" * 5000 + "ready")

    assert LogWatch(log, 0, "xready$").saw()


def test_an_expression_that_takes_long_takes_it_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_watch, "_AT_A_TIME", 0.0)
    monkeypatch.setattr(log_watch, "_SLOW", 0.0)
    log = tmp_path / "m.log"
    log.write_text("one\ntwo\nready\n")
    watch = LogWatch(log, 0, ".*.*ready")

    assert [watch.saw() for _ in range(3)] == [False, False, True]
    assert caplog.messages == ["log.expression_is_slow"]


def test_what_has_not_changed_is_not_looked_at_again(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text("almost rea")
    watch = LogWatch(log, 0, "ready")

    assert [watch.saw(), watch.saw()] == [False, False]
    with log.open("a") as file:
        file.write("dy")
    assert watch.saw()


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert not LogWatch(tmp_path / "none.log", 0, "x").saw()
