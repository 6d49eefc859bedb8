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


def test_a_log_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert not LogWatch(tmp_path / "none.log", 0, "x").saw()
