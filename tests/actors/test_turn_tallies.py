"""What is counted of the scheduler's turns, from the real core's answers to real events."""

from dataclasses import replace

import pytest

from qmsup.actors.turn_tallies import TurnTallies
from qmsup.core.scheduling.events import (
    Event,
    ListenerJoined,
    LoadAsked,
    ProcessFailed,
    ProcessReady,
    ProcessStopped,
    RequestAbandoned,
    RequestArrived,
    UnloadAsked,
    Woke,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import AskId, Incarnation, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds

A, B = ModelId("a"), ModelId("b")
WORKER = WorkerId("w")


def spec_of() -> Spec:
    models = [ModelSpec(id=name, argv=("x",), est_vram=MiB(3000)) for name in (A, B)]
    return Spec(models={m.id: m for m in models}, vram_budget=MiB(4000))


class Told:
    """A core whose turns are counted."""

    def __init__(self, spec: Spec | None = None) -> None:
        self.core = Scheduler(spec or spec_of(), Incarnation(1))
        self.seen = TurnTallies()
        self.at(0.0, ListenerJoined(listener=WORKER, name=ListenerName("main"), pid=1))

    def at(self, now: float, *events: Event) -> None:
        for event in events:
            effects = self.core.handle(event, Seconds(now))
            turn = Turn(self.core.state.event, Seconds(now), event, effects)
            self.seen.note(turn, Seconds(0.0002))

    def counts(self, metric: str) -> dict[tuple[str, ...], float]:
        return self.seen.tallies.counts.get(metric, {})

    def total(self, metric: str, *labels: str) -> float:
        return self.seen.tallies.spreads[metric][labels].total


def arrives(request: str, model: ModelId) -> RequestArrived:
    return RequestArrived(request=RequestId(request), listener=WORKER, model=model)


def ready(model: ModelId, incarnation: int) -> ProcessReady:
    return ProcessReady(
        model=model, incarnation=Incarnation(incarnation), upstream="127.0.0.1:1", pid=9
    )


def test_a_load_is_counted_and_its_time_is_from_the_decision_to_readiness() -> None:
    told = Told()

    told.at(1.0, arrives("q1", A))
    told.at(3.5, ready(A, 1))

    assert told.counts("swaps_total") == {("a", "fits"): 1}
    assert told.total("swap_seconds", "a") == pytest.approx(2.5)
    assert told.total("load_seconds", "a") == pytest.approx(2.5)


def test_a_swap_takes_the_stop_of_its_victim_too_and_a_load_does_not() -> None:
    told = Told()
    told.at(0.0, LoadAsked(ask=AskId("1"), model=A))
    told.at(1.0, ready(A, 1))

    told.at(2.0, LoadAsked(ask=AskId("2"), model=B))
    told.at(3.0, ProcessStopped(model=A, incarnation=Incarnation(1)))
    told.at(7.0, Woke(), ready(B, 2))

    assert told.counts("evictions_total") == {("a", "budget"): 1}
    assert told.counts("child_exits_total") == {("a", "stopped"): 1}
    assert told.total("swap_seconds", "b") == pytest.approx(5.0)
    assert told.total("load_seconds", "b") <= 4.0


def test_a_load_that_nobody_waits_for_and_that_is_in_the_way_is_aborted() -> None:
    told = Told()
    told.at(0.0, arrives("q1", A), arrives("q2", B))

    told.at(1.0, RequestAbandoned(request=RequestId("q1")))

    assert told.counts("aborted_loads_total") == {(): 1}


def test_ends_of_programs_are_told_apart() -> None:
    told = Told()
    told.at(0.0, arrives("q1", A))
    told.at(1.0, ProcessFailed(model=A, incarnation=Incarnation(1), reason="exited with code 1"))
    told.at(100.0, Woke(), arrives("q2", A))
    told.at(101.0, ready(A, 2))
    told.at(102.0, ProcessFailed(model=A, incarnation=Incarnation(2), reason="was killed"))

    assert told.counts("child_exits_total") == {("a", "failed_to_start"): 1, ("a", "crashed"): 1}


def test_an_unload_is_an_eviction_for_nobody() -> None:
    told = Told()
    told.at(0.0, LoadAsked(ask=AskId("1"), model=A))
    told.at(1.0, ready(A, 1))

    told.at(2.0, UnloadAsked(ask=AskId("2")))

    assert told.counts("evictions_total") == {("a", "unload"): 1}


def test_a_model_that_nobody_uses_is_evicted_by_its_time_to_live() -> None:
    spec = spec_of()
    spec = replace(spec, models={A: replace(spec.models[A], ttl=Seconds(5.0))})
    told = Told(spec)
    told.at(0.0, LoadAsked(ask=AskId("1"), model=A))
    told.at(1.0, ready(A, 1))

    told.at(7.0, Woke())

    assert told.counts("evictions_total") == {("a", "ttl"): 1}


def test_every_turn_is_timed() -> None:
    told = Told()
    told.at(0.0, Woke(), Woke())

    spread = told.seen.tallies.spreads["handle_seconds"][()]
    assert sum(spread.counts) == 3
    assert spread.total == pytest.approx(0.0006)
