"""What is kept and told of turns; the parts have tests of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.actors.chronicle import Chronicle
from qmsup.actors.feed import FeedActor
from qmsup.actors.journal_lines import Header
from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import Woke
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Epoch, EventNumber, Incarnation, ModelId
from qmsup.spec import ModelSpec, Spec
from qmsup.transport import context
from qmsup.units import Seconds

_SPEC = Spec(models={ModelId("m"): ModelSpec(id=ModelId("m"), argv=("x",))})
_STATE = Scheduler(_SPEC).state


@pytest.fixture
def store(places: Path) -> StateOnDisk:
    """The places are made first."""
    return StateOnDisk()


@pytest.fixture
def chronicle(places: Path, store: StateOnDisk) -> Iterator[Chronicle]:
    feed = FeedActor.start(
        endpoint=f"ipc://{places}/feed.sock", epoch=Epoch(1), tell=lambda _said: None
    )
    header = Header(
        epoch=Epoch(1), first_incarnation=Incarnation(1), spec=_SPEC, started=0.0, clock=Seconds(0)
    )
    yield Chronicle(header, feed=feed, store=store, offset=0.0)
    end_actors()
    context.destroy()


def _turn(at: float, *decisions: str) -> Turn:
    cause = EventNumber(1)
    records = [Record(cause=cause, decision=decision) for decision in decisions]
    return Turn(cause, Seconds(at), Woke(), records)


def test_turns_are_kept_soon(chronicle: Chronicle) -> None:
    due = [chronicle.due]
    chronicle.note(_turn(5.0))
    chronicle.keep_promises(_STATE)
    due.append(chronicle.due)
    chronicle.work(_STATE, _SPEC, Seconds(6.0))
    due.append(chronicle.due)
    chronicle.note(_turn(6.1, "swap.done"))
    chronicle.keep_promises(_STATE)
    due.append(chronicle.due)

    assert due == [None, 5.5, None, 6.6]
    assert [each["decision"] for each in chronicle.onlooker.recent] == ["swap.done"]


@pytest.mark.parametrize("decision", ["job.held", "model.pinned"])
def test_what_somebody_was_promised_is_kept_whatever_the_clock_says(
    chronicle: Chronicle, store: StateOnDisk, decision: str
) -> None:
    chronicle.note(_turn(5.0))
    chronicle.keep_promises(_STATE)
    before = store.standing()

    chronicle.note(_turn(5.1, decision))
    chronicle.keep_promises(_STATE)

    assert before == ""
    assert store.standing() != ""


def test_at_the_end_all_is_handed_over(chronicle: Chronicle) -> None:
    chronicle.note(_turn(5.0))
    chronicle.end(_STATE)
    assert chronicle.journal.due is None
