import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.errors import ChildError
from qmsup.processes import records
from qmsup.processes.records import Record, new_record


def some_record() -> Record:
    return new_record(model="m", incarnation=1, nonce="ab" * 16, port=21000)


def test_a_record_is_read_as_it_was_written(places: Path) -> None:
    record = some_record()
    records.write(record)
    records.write(replace(record, pid=5, start_ticks=6))

    assert list(records.read_all()) == [replace(record, pid=5, start_ticks=6)]
    records.erase(record)
    records.erase(record)
    assert list(records.read_all()) == []


def test_a_shorter_record_leaves_nothing_of_a_longer_one(places: Path) -> None:
    record = some_record()
    records.write(replace(record, model="x" * 700, host="y" * 200))
    records.write(record)

    assert list(records.read_all()) == [record]


def test_what_cannot_be_read_proves_nothing_and_goes(places: Path) -> None:
    records.write(some_record())
    for name, text in {"half.json": '{"model', "other.json": '{"a": 1}', "x.new": ""}.items():
        (records.children_dir() / name).write_text(text)

    assert list(records.read_all()) == [some_record()]
    assert len(list(records.children_dir().iterdir())) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"pid": "5"},
        {"owner": 1.5},
        {"incarnation": [1]},
        {"host": None},
        {"nonce": 5},
        {"nonce": "../../elsewhere"},
    ],
)
def test_a_record_that_says_what_none_can_say_is_none(
    places: Path, wrong: dict[str, object]
) -> None:
    records.write(some_record())
    kept = json.loads(some_record().path.read_text())
    (records.children_dir() / "wrong.json").write_text(json.dumps(kept | wrong))
    (records.children_dir() / "deep.json").write_text("[" * 100_000)

    assert list(records.read_all()) == [some_record()]
    assert list(records.children_dir().iterdir()) == [some_record().path]


def test_a_folder_among_the_records_is_left_alone(places: Path) -> None:
    records.write(some_record())
    (records.children_dir() / "backup").mkdir()

    assert list(records.read_all()) == [some_record()]


def test_an_owner_is_known_by_its_start_too(places: Path) -> None:
    record = some_record()

    assert record.owner == os.getpid()
    assert record.owner_is_alive
    assert not replace(record, owner_ticks=1).owner_is_alive
    assert not replace(record, owner=2**22 + 1).owner_is_alive


def test_a_folder_that_cannot_be_written_is_told_with_the_way_out(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "file").write_text("")
    monkeypatch.setenv("QMSUP_STATE_DIR", str(places / "file"))

    with pytest.raises(ChildError, match="set QMSUP_STATE_DIR"):
        records.write(some_record())
