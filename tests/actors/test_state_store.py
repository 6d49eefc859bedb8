"""The store's thread on a real disk: what one life measured the next one knows, and a bad disk stops nobody."""

import logging
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors import footprints, mishaps, state_store
from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import FootprintMeasured, SeenBy
from qmsup.ids import EventNumber, ModelId
from qmsup.spec import ModelSpec
from qmsup.units import MiB, Seconds
from tests.support.children import wait_until

CHAT = ModelSpec(id=ModelId("chat"), argv=("server", "--name", "chat"))
VIDEO = ModelSpec(id=ModelId("video"), argv=("server", "--name", "video"))


def measured(model: ModelSpec, peak: int) -> Remember:
    return Remember(
        cause=EventNumber(1),
        model=model.id,
        argv=model.argv,
        peak=MiB(peak),
        ram=MiB(3),
        seen_by=SeenBy.TELEMETRY,
    )


@pytest.fixture(autouse=True)
def no_actor_stays(places: Path) -> Iterator[None]:
    yield
    end_actors()


def test_what_one_life_measured_the_next_one_knows() -> None:
    former = StateOnDisk()
    assert former.known_of([CHAT, VIDEO]) == []
    former.remember(measured(CHAT, 700))
    former.remember(measured(CHAT, 800))
    end_actors()
    former.remember(measured(CHAT, 900))  # to a thread that has ended: nobody minds

    assert StateOnDisk().known_of([CHAT, VIDEO]) == [
        FootprintMeasured(model=CHAT.id, argv=CHAT.argv, peak=MiB(800), ram=MiB(3))
    ]


def test_what_a_new_configuration_may_want_to_know_is_told_after_what_came_before() -> None:
    store = StateOnDisk()
    told: queue.Queue[FootprintMeasured] = queue.Queue()

    store.remember(measured(VIDEO, 500))
    store.recall([VIDEO], told.put)

    assert told.get(timeout=10).peak == 500
    end_actors()
    store.recall([VIDEO], told.put)
    assert told.empty()


def test_a_damaged_file_is_set_aside_while_it_is_in_use(caplog: pytest.LogCaptureFixture) -> None:
    store = StateOnDisk()
    store.remember(measured(CHAT, 700))
    assert len(store.known_of([CHAT])) == 1
    for path in where.state_dir().glob("state.db*"):
        path.write_bytes(b"\xff" * 9000)

    store.remember(measured(CHAT, 750))
    store.remember(measured(CHAT, 760))

    assert [event.peak for event in store.known_of([CHAT])] == [760]
    assert [*where.state_dir().glob("state.db.unusable-*")]
    assert "state.set_aside" in caplog.messages


def test_a_file_that_was_removed_is_begun_anew_with_how_things_stand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = StateOnDisk()
    store.keep_standing("as ever")
    assert store.standing() == "as ever"
    for path in where.state_dir().glob("state.db*"):
        path.unlink()

    store.remember(measured(CHAT, 750))
    assert [event.peak for event in store.known_of([CHAT])] == [750]
    end_actors()

    later = StateOnDisk()
    assert later.standing() == "as ever"
    assert [event.peak for event in later.known_of([CHAT])] == [750]
    assert "state.removed" in caplog.messages


def test_a_folder_that_takes_nothing_is_told_of_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "qmsup")
    where.state_dir().write_text("a file where the folder should be")
    store = StateOnDisk()
    for _ in range(3):
        store.remember(measured(CHAT, 700))
    assert store.known_of([CHAT]) == []
    assert caplog.messages.count("state.not_kept") == 1

    where.state_dir().unlink()
    store.remember(measured(CHAT, 700))

    assert [event.peak for event in store.known_of([CHAT])] == [700]


def test_a_bug_costs_the_store_what_it_was_told_then_and_leaves_nothing_half_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mishaps.forget()
    store = StateOnDisk()
    store.remember(measured(CHAT, 700))
    assert len(store.known_of([CHAT])) == 1
    with monkeypatch.context() as patch:
        patch.setattr(footprints, "_MOST", "many")  # which is met when the row has been written
        store.remember(measured(CHAT, 800))
        store.remember(measured(VIDEO, 500))
        assert [event.peak for event in store.known_of([CHAT, VIDEO])] == [700]
        patch.setattr(footprints, "find", None)
        assert store.known_of([CHAT]) == [], "a start hangs on no bug"
    store.remember(measured(VIDEO, 600))

    assert [event.peak for event in store.known_of([CHAT, VIDEO])] == [700, 600]
    assert [(each.part, each.times) for each in mishaps.told()] == [("state", 3)]
    mishaps.forget()


def test_how_things_stand_is_kept_when_what_hindered_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_store, "_TRIED_AGAIN_AFTER", Seconds(0.05))
    where.state_dir().write_text("a file where the folder should be")
    store = StateOnDisk()
    store.keep_standing("former")
    store.keep_standing("newest")
    assert store.standing() == ""

    where.state_dir().unlink()

    wait_until(lambda: store.standing() == "newest")


def test_how_things_stand_is_kept_at_the_end_and_before_what_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mishaps.forget()
    store = StateOnDisk()
    with monkeypatch.context() as patch:
        patch.setattr(state_store, "_keep_standing", lambda *_: 1 / 0)
        store.keep_standing("first")
        store.remember(measured(CHAT, 700))
        assert store.standing() == "", "nobody is told what is not on disk"
        assert [event.peak for event in store.known_of([CHAT])] == [700], "but the rest is kept"
    assert store.standing() == "first"
    with monkeypatch.context() as patch:
        patch.setattr(state_store, "_keep_standing", lambda *_: 1 / 0)
        store.keep_standing("second")
        assert len(store.known_of([CHAT])) == 1
    end_actors()

    assert StateOnDisk().standing() == "second"
    mishaps.forget()
