"""What is on disk of jobs: read by another life, and by whoever serves clients."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup import places as folders
from qmsup.actors.job_book import JobBook, JobRecord
from qmsup.ids import Incarnation, LeaseId, ModelId

pytestmark = pytest.mark.usefixtures("places")

RECORD = JobRecord(
    id="qm0123456789ab-7",
    theirs="7",
    lease=LeaseId("qm0123456789ab"),
    model=ModelId("paint"),
    incarnation=Incarnation(3),
    upstream="127.0.0.1:5800",
    kind="img_gen",
)


QUEUED = b'{"status": "queued"}'
DONE = b'{"status": "completed"}'


def test_a_job_is_on_record_for_another_life_and_its_document_for_clients() -> None:
    text = b'{"id": "x", "status": "generating"}'

    kept = JobBook().keep(RECORD, text)

    assert kept == RECORD
    assert list(JobBook().read_all()) == [RECORD]
    assert folders.job_document(RECORD.id).read_bytes() == text
    assert JobBook().document(RECORD) == text


def test_a_job_whose_document_says_so_has_ended_once() -> None:
    book = JobBook()
    ended = book.keep(RECORD, DONE)

    assert ended.ended is not None
    assert book.keep(ended, DONE) == ended
    assert list(JobBook().read_all()) == [ended]


def test_what_is_forgotten_leaves_nothing() -> None:
    book = JobBook()
    book.keep(RECORD, DONE)

    book.forget(RECORD)
    book.forget(RECORD)

    assert list(folders.jobs_dir().iterdir()) == []


def test_nobody_else_may_read_it() -> None:
    JobBook().keep(RECORD, QUEUED)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in folders.jobs_dir().iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(folders.jobs_dir().stat().st_mode) == 0o700


def test_what_cannot_be_read_is_cleared_away() -> None:
    book = JobBook()
    book.keep(RECORD, QUEUED)
    other = replace(RECORD, id="qm0123456789ab-8")
    folder = folders.jobs_dir()
    (folder / "qm000000000000-1.json").write_text("{")
    (folder / "qm000000000001-1.json").write_text(json.dumps({"id": "x"}))
    kept = json.loads((folder / f"{RECORD.id}.json").read_text())
    (folder / "qm000000000003-1.json").write_text(json.dumps(kept | {"id": 5}))
    (folder / "qm000000000004-1.json").write_text("[" * 100_000)
    (folder / "qm000000000002-1.json").write_text((folder / f"{RECORD.id}.json").read_text())
    (folder / f"{other.id}.document").write_text("{}")  # of a job that is not on record
    (folder / f"{other.id}.json.new").write_text("{}")

    assert list(book.read_all()) == [RECORD]
    assert {path.name for path in folder.iterdir()} == {
        f"{RECORD.id}.json",
        f"{RECORD.id}.document",
    }


def test_a_document_that_is_lost_is_made_up_from_the_record() -> None:
    book = JobBook()
    book.keep(RECORD, QUEUED)
    for damage in ("[]", "{"):
        folders.job_document(RECORD.id).write_text(damage)
        assert json.loads(book.document(RECORD))["kind"] == "img_gen"
    folders.job_document(RECORD.id).unlink()
    assert json.loads(book.document(RECORD))["status"] == "queued"


def test_what_the_disk_does_not_take_is_known_and_written_when_there_is_room(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = JobBook()
    assert book.keep(RECORD, QUEUED) == RECORD
    in_the_way = folders.job_document(RECORD.id).with_suffix(".document.new")
    in_the_way.mkdir()  # as a full disk is

    ended = book.keep(RECORD, DONE)

    assert ended.ended is not None
    assert [record.getMessage() for record in caplog.records] == ["job.not_kept"]
    assert book.is_behind
    assert not folders.job_document(RECORD.id).exists()  # rather none than an older one
    assert book.document(ended) == DONE
    book.catch_up()
    assert not folders.job_document(RECORD.id).exists()
    in_the_way.rmdir()
    book.catch_up()
    assert folders.job_document(RECORD.id).read_bytes() == DONE
    assert list(JobBook().read_all()) == [ended]
    assert bool(book.is_behind) is False


def test_what_the_disk_never_took_is_forgotten_like_all(places: Path) -> None:
    (places / "state").mkdir()
    (places / "state" / "jobs").write_text("in the way")
    book = JobBook()
    assert book.keep(RECORD, QUEUED) == RECORD
    assert book.document(RECORD) == QUEUED

    book.forget(RECORD)

    assert not book.is_behind
