"""How things stand, kept by one life of the scheduler and read by the next."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmsup import places as where
from qmsup.actors.sightings import Kept
from qmsup.actors.standing import LivingWorker, StandingKeeper, read_former
from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tree import end_actors
from qmsup.core.scheduling.events import (
    LeaseRequested,
    ListenerJoined,
    LoadAsked,
    PinAsked,
    ProcessReady,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.vram.floor import Floor
from qmsup.ids import AskId, Incarnation, LeaseId, ListenerName, ModelId, WorkerId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduler_actor import QUICK, becomes, models_of, scheduler_of

M = ModelId("m")


@pytest.fixture(autouse=True)
def no_actor_stays(places: Path) -> Iterator[None]:
    yield
    end_actors()


def _state(pid: int) -> Scheduler:
    scheduler = Scheduler(Spec(models={M: ModelSpec(id=M, argv=("x",))}))
    scheduler.handle(
        ListenerJoined(listener=WorkerId("w1"), name=ListenerName("main"), pid=pid), Seconds(1.0)
    )
    scheduler.handle(PinAsked(ask=AskId("p"), model=M, is_pinned=True), Seconds(1.0))
    scheduler.handle(LoadAsked(ask=AskId("l"), model=M), Seconds(1.0))
    scheduler.handle(
        ProcessReady(model=M, incarnation=Incarnation(1), upstream="x:1", pid=1), Seconds(1.0)
    )
    return scheduler


def test_it_is_due_a_second_after_something_happened_and_urgent_when_it_must_not_be_lost() -> None:
    keeper = StandingKeeper(StateOnDisk(), 0.0)
    wanted = [(keeper.due, keeper.is_urgent)]
    keeper.stir(Seconds(5.0))
    keeper.stir(Seconds(5.5))
    wanted.append((keeper.due, keeper.is_urgent))
    keeper.hurry()
    wanted.append((keeper.due, keeper.is_urgent))
    keeper.keep(_state(os.getpid()).state)
    wanted.append((keeper.due, keeper.is_urgent))

    assert wanted == [(None, False), (6.0, False), (6.0, True), (None, False)]


def test_the_next_life_reads_what_was_kept_and_which_workers_live() -> None:
    store = StateOnDisk()
    offset = time.time() - time.monotonic()
    StandingKeeper(store, offset).keep(_state(os.getpid()).state)

    former = read_former(store.standing(), offset)

    assert former is not None
    assert former.workers == (LivingWorker(worker=WorkerId("w1"), pid=os.getpid()),)
    assert former.event.pins == (M,)


CARDS = frozenset({"u2", "u1"})
LEARNT = Floor(lowest={CARDS: MiB(1500), frozenset({"u1"}): MiB(900)})


def test_what_others_use_at_rest_is_known_to_the_life_after_one_that_died() -> None:
    store, memory = StateOnDisk(), Kept()
    keeper, state = StandingKeeper(store, 0.0, memory), _state(os.getpid()).state
    keeper.keep(state)
    memory.floor = LEARNT
    keeper.keep(state)
    text = store.standing()

    died = read_former(text, 0.0)
    keeper.keep(state, ends=True)
    ended = read_former(store.standing(), 0.0)

    assert died is not None
    assert died.floor == LEARNT
    assert ended is not None
    assert ended.floor == Floor()


@pytest.mark.parametrize("change", [{"boot": "another"}, {"floor": []}, {"floor": None}])
def test_after_another_boot_or_a_former_release_it_is_learnt_anew(change: dict[str, Any]) -> None:
    store = StateOnDisk()
    StandingKeeper(store, 0.0, Kept(floor=LEARNT)).keep(_state(os.getpid()).state)
    told = json.loads(store.standing()) | change
    if change.get("floor", change) is None:
        del told["floor"]

    former = read_former(json.dumps(told), 0.0)

    assert former is not None
    assert former.floor == Floor()


def test_a_worker_whose_process_is_gone_is_none() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        store = StateOnDisk()
        StandingKeeper(store, 0.0).keep(_state(process.pid).state)
        process.kill()
    former = read_former(store.standing(), 0.0)

    assert former is not None
    assert former.workers == ()


def test_after_another_boot_no_worker_is_left() -> None:
    store = StateOnDisk()
    StandingKeeper(store, 0.0).keep(_state(os.getpid()).state)
    told = json.loads(store.standing()) | {"boot": "another"}

    former = read_former(json.dumps(told), 0.0)

    assert former is not None
    assert former.workers == ()


@pytest.mark.parametrize(
    ("boot", "left"), [(None, 600.0), ("another", 600.0 - 3600.0)], ids=["same boot", "another"]
)
def test_a_wall_clock_that_was_set_meanwhile_ends_no_lease_and_after_another_boot_it_is_all_there_is(
    boot: str | None, left: float
) -> None:
    scheduler, now = _state(os.getpid()), time.monotonic()
    lease = LeaseRequested(
        ask=AskId("j"), lease=LeaseId("job"), model=M, ttl=Seconds(600.0), owner="o", purpose="p"
    )
    scheduler.handle(lease, Seconds(now))
    store = StateOnDisk()
    StandingKeeper(store, 0.0).keep(scheduler.state)
    told = json.loads(store.standing())

    former = read_former(json.dumps(told | ({"boot": boot} if boot else {})), 3600.0)

    assert former is not None
    [job] = former.event.jobs
    assert job.left == pytest.approx(left, abs=30.0)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, "5", '{"version": 99}', '{"version": 1}']
)
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert read_former(text, 0.0) is None


def test_a_pin_outlives_its_scheduler(places: Path) -> None:
    with scheduler_of(models_of(QUICK), places) as running:
        running.client().body("pin", model="m")
        store = where.state_db()
        becomes(store.exists, wanted=True)
        becomes(_kept_pins, ["m"])

    with scheduler_of(models_of(QUICK), places) as running:
        [model] = running.client("ctl-2-x").body("ps")["models"]
        assert model["pinned"] is True


def _kept_pins() -> list[str]:
    text = StateOnDisk().standing()
    return json.loads(text)["standing"]["pins"] if text else []
