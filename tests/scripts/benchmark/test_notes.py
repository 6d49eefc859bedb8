import json
from pathlib import Path

import pytest

from scripts.benchmark.notes import Notes
from scripts.benchmark.programs import BenchError


def write(path: Path, *notes: dict[str, object]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(note) + "\n" for note in notes)


def test_notes_are_found_by_kind_and_fields_and_each_once(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    write(path, {"what": "ready", "at": 1}, {"what": "aborted", "at": 2, "tag": 1})
    write(path, {"what": "aborted", "at": 3, "tag": 2})
    notes = Notes(path)

    assert notes.wait("aborted", tag=2) == {"at": 3, "tag": 2}
    with pytest.raises(BenchError, match="aborted"):
        notes.wait("aborted", timeout_s=0.0)


def test_a_line_that_is_not_complete_yet_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text('{"what": "ready", ')
    notes = Notes(path)
    with pytest.raises(BenchError):
        notes.wait("ready", timeout_s=0.0)

    with path.open("a") as file:
        file.write('"at": 5}\n')

    assert notes.wait("ready") == {"at": 5}


def test_what_was_noted_before_can_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    write(path, {"what": "asked", "at": 1})
    notes = Notes(path)

    notes.skip()
    write(path, {"what": "asked", "at": 2})

    assert notes.wait("asked") == {"at": 2}
