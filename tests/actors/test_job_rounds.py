"""How long a job is believed in, and how often it is asked for."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from qmsup import places as folders
from qmsup.actors import job_rounds
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.job_book import KEPT_FOR, JobBook, JobRecord
from qmsup.actors.job_calls import Calls
from qmsup.actors.job_news import EndJob, JobWish, KeepJob
from qmsup.actors.job_rounds import Rounds
from qmsup.ids import Incarnation, LeaseId, ModelId
from qmsup.units import Seconds
from qmsup.upstream.call import Answered, Unanswered

J = LeaseId("qm0123456789ab")
RECORD = JobRecord(
    id=f"{J}-1",
    theirs="1",
    lease=J,
    model=ModelId("paint"),
    incarnation=Incarnation(7),
    upstream="127.0.0.1:1",  # where nobody listens
    kind="img_gen",
)
QUEUED = b'{"id": "1", "status": "queued"}'
SILENCE = Unanswered(because="nobody there")


@pytest.fixture
def wishes() -> list[JobWish]:
    return []


@pytest.fixture
def calls() -> Iterator[Calls]:
    with closing(PollingInbox()) as inbox:
        calls = Calls(inbox)
        yield calls
        calls.close()


@pytest.fixture
def rounds(places: object, calls: Calls, wishes: list[JobWish]) -> Rounds:
    return Rounds(JobBook(), calls, wishes.append, lambda _: None)


def due_of(rounds: Rounds) -> Seconds:
    due = rounds.due
    assert due is not None
    return due


def status() -> object:
    return json.loads(folders.job_document(RECORD.id).read_bytes())["status"]


def test_a_job_of_which_nothing_is_heard_is_given_up_in_the_end(
    rounds: Rounds, wishes: list[JobWish], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.watch(RECORD, QUEUED)
    rounds.told(J, SILENCE)
    rounds.told(J, SILENCE)
    assert (status(), wishes) == ("queued", [])

    monkeypatch.setattr(job_rounds, "_GIVEN_UP_AFTER", -1)
    rounds.told(J, SILENCE)

    assert status() == "failed"
    assert wishes == [EndJob(lease=J)]
    rounds.told(J, SILENCE)  # of a question that was under way


def test_one_good_answer_makes_up_for_many_bad_ones(
    rounds: Rounds, wishes: list[JobWish], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.watch(RECORD, QUEUED)
    rounds.told(J, SILENCE)
    rounds.told(J, Answered(status=200, body=b'{"id": "1", "status": "generating"}'))
    monkeypatch.setattr(job_rounds, "_GIVEN_UP_AFTER", -1)
    rounds.told(J, SILENCE)

    assert (status(), wishes) == ("generating", [])


def test_a_job_is_asked_for_and_its_lease_renewed_when_their_time_has_come(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    assert rounds.due is None
    rounds.watch(RECORD, QUEUED)
    first = due_of(rounds)

    rounds.work(first)
    assert wishes == [
        KeepJob(lease=J, model=RECORD.model, incarnation=RECORD.incarnation, purpose="img_gen")
    ]
    second = due_of(rounds)
    assert first < second
    rounds.work(Seconds(second + 1))
    assert len(wishes) == 1
    assert status() == "queued"
    rounds.work(Seconds(second + 100))
    assert len(wishes) == 2


def test_a_job_that_was_done_at_once_is_over_at_once(rounds: Rounds, wishes: list[JobWish]) -> None:
    rounds.watch(RECORD, b'{"id": "1", "status": "completed"}')

    assert wishes == [EndJob(lease=J)]
    found = rounds.find(RECORD.id)
    assert found is not None
    assert found.ended is not None
    assert json.loads(rounds.document(found))["status"] == "completed"


def test_words_about_a_job_that_nobody_looks_after_are_nothing(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    rounds.lease_ended(J, "x")
    rounds.child_gone(J)
    rounds.told(J, SILENCE)

    assert not rounds.lease_given(J)
    assert (rounds.find(RECORD.id), wishes) == (None, [])


def test_jobs_of_a_former_life_are_not_asked_for_before_their_child_is_known_to_run(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    JobBook().keep(RECORD, QUEUED)
    ended = replace(RECORD, id="qm0123456789ac-1", lease=LeaseId("qm0123456789ac"))
    JobBook().keep(ended, b'{"id": "x", "status": "failed"}')

    assert rounds.recall() == [RECORD]

    assert rounds.find(RECORD.id) == RECORD
    assert rounds.find(ended.id) is not None
    rounds.work(due_of(rounds))
    assert [type(wish) for wish in wishes] == [KeepJob]
    assert rounds.lease_given(J)
    rounds.child_gone(J)
    assert status() == "failed"


def test_what_a_full_disk_did_not_take_is_tried_again_though_the_job_is_over(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    rounds.watch(RECORD, QUEUED)
    in_the_way = folders.job_document(RECORD.id).with_suffix(".document.new")
    in_the_way.mkdir()
    rounds.child_gone(J)
    assert json.loads(rounds.document(RECORD))["status"] == "failed"
    rounds.work(due_of(rounds))
    assert not folders.job_document(RECORD.id).exists()

    in_the_way.rmdir()
    rounds.work(due_of(rounds))

    assert status() == "failed"
    assert due_of(rounds) > time.monotonic() + 60.0


def test_a_job_whose_last_document_was_all_that_could_be_written_is_over(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    JobBook().keep(RECORD, QUEUED)
    done = b'{"id": "1", "status": "completed"}'
    folders.job_document(RECORD.id).write_bytes(done)

    assert rounds.recall() == []

    assert wishes == [EndJob(lease=J)]
    rounds.child_gone(J)
    assert status() == "completed"
    [record] = JobBook().read_all()
    assert record.ended is not None


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_wall_clock_that_is_set_changes_nothing_for_a_job_that_is_over(
    rounds: Rounds, wishes: list[JobWish], monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    rounds.watch(RECORD, QUEUED)
    rounds.child_gone(J)
    clock, before = time.time, due_of(rounds)

    monkeypatch.setattr(time, "time", lambda: clock() + jump)
    rounds.work(Seconds(time.monotonic() + 60.0))

    assert due_of(rounds) == before
    assert status() == "failed"


def test_a_job_that_ends_in_the_future_by_a_clock_that_was_set_back_is_kept_no_longer_than_others(
    rounds: Rounds, wishes: list[JobWish]
) -> None:
    later = replace(RECORD, ended=time.time() + 86_400.0)
    JobBook().keep(later, b'{"id": "1", "status": "completed"}')

    rounds.recall()

    assert due_of(rounds) <= time.monotonic() + KEPT_FOR
