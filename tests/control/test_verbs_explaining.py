"""`queue` and `explain`: what they ask and print; and the journal, with and without a scheduler."""

import json
from pathlib import Path

import pytest

from qmsup import places as where
from tests.control.conftest import Run
from tests.support.standin import StandInScheduler

PLACE = {
    "position": 1,
    "request": "q-1",
    "model": "chat",
    "listener": "main",
    "waited_s": 75.2,
    "patience_left_s": 224.8,
    "because": "busy",
}
LOAD = {"position": 2, "request": None, "model": "coder", "listener": None, "because": "collides"}
OF_MODEL = {
    "model": "chat",
    "request": None,
    "now": ["chat is stopped"],
    "evicts": ["coder"],
    "reasons": ["chat needs 12 288 MiB; 20 000 MiB of 24 576 MiB VRAM are in use"],
    "obstacles": ["coder would have to stop and has 1 request in flight: q-9"],
    "waiting": [PLACE, LOAD],
    "loading": ["q-7"],
    "story": [{"time": 1.5, "epoch": 1, "turn": 3, "text": "loading chat began"}],
}
OF_REQUEST = {
    "model": "chat",
    "request": "q-1",
    "now": ["has waited 75.2 s, at place 1 of 2 now"],
    "story": [{"time": 1.5, "epoch": 1, "turn": 3, "text": "arrived for chat"}],
}


def test_the_queue_is_a_table(scheduler: StandInScheduler, qmsup: Run) -> None:
    loading = [{"model": "vid", "waiting": 2}]
    scheduler.says("queue", {"queue": [PLACE, LOAD], "loading": loading})

    heading, first, second, *notes = qmsup("queue").out.splitlines()

    assert heading.split() == [
        "POSITION",
        "REQUEST",
        "MODEL",
        "LISTENER",
        "WAITED",
        "PATIENCE",
        "BECAUSE",
    ]
    assert first.split() == ["1", "q-1", "chat", "main", "1m15s", "3m44s", "busy"]
    assert second.split() == ["2", "(a", "load)", "coder", "-", "0s", "-", "collides"]
    assert notes == ["", "loading: vid (2 waiting)"]


def test_an_empty_queue_says_so(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("queue", {"queue": [], "loading": []})

    assert qmsup("queue").out == "nobody stands in the line\n"
    assert json.loads(qmsup("queue", "--json").out) == {"queue": [], "loading": []}


def test_a_model_is_explained_in_sections(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("explain", OF_MODEL)

    ended = qmsup("explain", "chat")

    assert scheduler.asked[0].args == {"model": "chat"}
    assert ended.out.splitlines()[:-1] == [
        "chat is stopped",
        "waiting for it:",
        "  q-1, place 1, for 75.2 s: busy",
        "  a load, place 2, for 0.0 s: collides",
        "  q-7, until it is loaded",
        "if it were loaded now:",
        "  chat needs 12 288 MiB; 20 000 MiB of 24 576 MiB VRAM are in use",
        "in the way:",
        "  coder would have to stop and has 1 request in flight: q-9",
        "what happened:",
    ]
    assert ended.out.endswith("  loading chat began\n")
    assert json.loads(qmsup("explain", "chat", "--json").out) == OF_MODEL


def test_a_request_is_explained_as_a_story(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("explain", OF_REQUEST)

    lines = qmsup("explain", "--request", "q-1").out.splitlines()

    assert scheduler.asked[0].args == {"request": "q-1"}
    assert lines[:2] == ["q-1, for chat", "what happened:"]
    assert lines[2].endswith("  arrived for chat")
    assert lines[3:] == ["now:", "  has waited 75.2 s, at place 1 of 2 now"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("chat", "--request", "q-1"), ("chat", "--dump", "-"), ("--request", "q", "--dump", "-")],
)
def test_it_explains_one_thing_at_a_time(qmsup: Run, arguments: tuple[str, ...]) -> None:
    ended = qmsup("explain", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert "name one MODEL, or one --request ID, or a file to --dump to" in ended.err


def _journal(folder: Path, *segments: bytes) -> None:
    folder.mkdir(parents=True)
    for number, text in enumerate(segments, 9):
        (folder / f"{number:08}.jsonl").write_bytes(text)


def test_a_dump_is_the_segments_in_order(
    scheduler: StandInScheduler, qmsup: Run, places: Path
) -> None:
    _journal(places / "j", b"one\n", b"two\n")
    scheduler.says("journal", {"folder": str(places / "j"), "is_written": True})

    ended = qmsup("explain", "--dump", str(places / "dump"))

    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (places / "dump").read_bytes() == b"one\ntwo\n"


def test_a_dump_tells_when_the_newest_is_missing(
    scheduler: StandInScheduler, qmsup: Run, places: Path
) -> None:
    _journal(places / "j", b"one\n")
    scheduler.says("journal", {"folder": str(places / "j"), "is_written": False})

    assert "could not be written" in qmsup("explain", "--dump", str(places / "dump")).err


def test_a_journal_can_be_had_after_the_scheduler_has_ended(qmsup: Run, places: Path) -> None:
    nothing = qmsup("explain", "--dump", str(places / "dump"))
    assert nothing.code == 2
    assert f"there is no journal in {where.journal_dir()}" in nothing.err
    assert not (places / "dump").exists()

    _journal(where.journal_dir(), b"last words\n")
    ended = qmsup("explain", "--dump", str(places / "dump"))

    assert ended.code == 0
    assert "as it was left" in ended.err
    assert (places / "dump").read_bytes() == b"last words\n"
