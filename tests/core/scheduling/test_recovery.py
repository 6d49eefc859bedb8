"""A new life of the scheduler among what a former one left running. Numbers of the former life are below 100."""

from dataclasses import replace

import pytest

from qmsup.core.scheduling import views
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import (
    ConfigApplied,
    ListenerJoined,
    LiveLease,
    RequestArrived,
)
from qmsup.core.scheduling.inheritance import AdoptedChild, KeptJob, Recovered
from qmsup.ids import Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import SchedulerSpec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, TablePolicy, spec_of

A, B, C = ModelId("a"), ModelId("b"), ModelId("c")
W = WorkerId("w1")
_NO_HOLDS = SchedulerSpec(hold=Seconds(0.0), listener_grace=Seconds(30.0))


def adopted(model: str, number: int, **more: object) -> AdoptedChild:
    return replace(
        AdoptedChild(
            model=ModelId(model),
            incarnation=Incarnation(number),
            pid=1000 + number,
            port=5800 + number,
            upstream=f"127.0.0.1:{5800 + number}",
        ),
        **more,  # type: ignore[arg-type]
    )


def begun(
    event: Recovered,
    *,
    evicts: dict[str, str] | None = None,
    models: str = "a b c",
    slots: int = 4,
    sizes: dict[str, int] | None = None,
    budget: int | None = None,
) -> Desk:
    spec = spec_of(
        models,
        slots=slots,
        sizes=sizes,
        scheduler=_NO_HOLDS,
        vram_budget=None if budget is None else MiB(budget),
    )
    desk = Desk(spec, evicts=evicts, first_incarnation=100)
    desk.tell(event)
    if evicts is not None:
        desk.scheduler.state.policy = TablePolicy(table=evicts)
    return desk


def greets(
    worker: str = "w1",
    *,
    leases: tuple[LiveLease, ...] = (),
    waiting: tuple[RequestArrived, ...] = (),
) -> ListenerJoined:
    return ListenerJoined(
        listener=WorkerId(worker),
        name=ListenerName("main"),
        pid=77,
        leases=leases,
        waiting=waiting,
    )


def live(request: str, model: str, number: int) -> LiveLease:
    return LiveLease(
        request=RequestId(request), model=ModelId(model), incarnation=Incarnation(number)
    )


def state_of(desk: Desk, model: ModelId) -> views.ModelState:
    spec = desk.scheduler.state.spec
    all_ = views.models(desk.scheduler.state, spec, Seconds(desk.now))
    return next(view.state for view in all_ if view.id == model)


def test_a_child_that_lives_on_serves_without_a_load() -> None:
    desk = begun(Recovered(children=(adopted("a", 7),)))

    desk.play("r1 asks a -> grant r1")

    lease = desk.scheduler.state.leases[LeaseId("r1")]
    assert (lease.incarnation, lease.upstream) == (7, "127.0.0.1:5807")


def test_until_each_worker_was_heard_nothing_is_loaded_and_nothing_stopped() -> None:
    desk = begun(
        Recovered(children=(adopted("a", 7),), workers=(W, WorkerId("w2"))), evicts={"b": "a"}
    )

    desk.play("""
        r1 asks b from=w3    -> r1 at 1
        r2 asks c from=w3    -> r2 at 2
        r3 asks a from=w3    -> grant r3
        r3 ends              ->
        """)
    assert state_of(desk, A) is views.ModelState.READY
    assert {view.because for view in views.line(desk.scheduler.state, Seconds(0.0))} == {
        "recovering"
    }

    desk.tell(greets("w1", leases=(live("s1", "a", 7),)))
    assert desk.told() == ""
    desk.tell(greets("w2"))
    assert desk.told() == "load c100, loading r2"  # b has to wait for the stream on a
    desk.play("s1 ends -> stop a7, loading r1")


def test_a_worker_that_died_is_not_waited_for() -> None:
    desk = begun(Recovered(children=(adopted("a", 7),), workers=(W,)), evicts={"b": "a"})

    desk.play("""
        r1 asks b from=w3    -> r1 at 1
        w1 lost              -> stop a7, loading r1
        """)


def test_a_worker_that_lives_and_does_not_greet_is_waited_for_as_long_as_a_silent_one() -> None:
    desk = begun(Recovered(workers=(W,)))

    desk.play("""
        r1 asks b from=w3    -> r1 at 1
        at 30                -> load b100, loading r1
        """)


def test_waiting_requests_come_back_with_the_time_they_have_waited() -> None:
    desk = begun(Recovered(workers=(W,)), evicts={"a": "b", "b": "a"})
    desk.play("r1 asks a from=w3 -> r1 at 1")
    before = RequestArrived(
        request=RequestId("old"), listener=W, model=B, streaming=True, waited=Seconds(40.0)
    )

    desk.tell(greets("w1", waiting=(before,)))

    assert desk.told() == "old at 1, load b100, loading old"


def test_a_limit_counts_what_is_known() -> None:
    desk = begun(Recovered(children=(adopted("a", 7, total_slots=1),), workers=(W,)), slots=1)
    desk.play("""
        r1 asks a from=w3 -> grant r1
        r2 asks a from=w3 -> r2 at 1
        """)


def test_a_job_goes_on_where_its_child_does() -> None:
    job = KeptJob(lease=LeaseId("j"), model=A, owner="me", purpose="a render", left=Seconds(5.0))
    lost = replace(job, lease=LeaseId("k"), model=B)
    over = replace(job, lease=LeaseId("l"), left=Seconds(0.0))
    desk = begun(Recovered(children=(adopted("a", 7),), jobs=(job, lost, over)), evicts={"b": "a"})

    [kept] = views.leases(desk.scheduler.state, Seconds(0.0))
    assert (kept.id, kept.owner, kept.purpose, kept.ttl_left) == ("j", "me", "a render", 5.0)
    desk.play("""
        r1 asks b   -> r1 at 1
        at 5        -> stop a7, loading r1
        """)


def test_order_holds_pins_and_draining_are_as_they_were() -> None:
    desk = begun(
        Recovered(
            children=(adopted("a", 7), adopted("b", 8), adopted("c", 9)),
            order=(C, ModelId("gone"), A, B),
            holds=((A, Seconds(9.0)), (ModelId("gone"), Seconds(9.0)), (B, Seconds(0.0))),
            pins=(C, ModelId("gone")),
        )
    )
    state = desk.scheduler.state

    assert state.running == (C, A, B)
    assert [m for m in (A, B, C) if state.models[m].holds.until > 0] == [A]
    assert [m for m in (A, B, C) if state.models[m].is_pinned] == [C]
    assert not state.is_draining

    drained = begun(Recovered(is_draining=True))
    records = [effect.decision for effect in drained.effects if isinstance(effect, Record)]
    assert records == ["scheduler.recovered", "box.draining"]
    drained.play("r1 asks a -> refuse r1 draining")


def test_a_hold_of_before_ends_by_time() -> None:
    desk = begun(
        Recovered(children=(adopted("a", 7),), holds=((A, Seconds(9.0)),)), evicts={"b": "a"}
    )
    desk.play("""
        r1 asks b   -> r1 at 1
        at 9        -> stop a7, loading r1
        """)


def test_a_child_with_another_command_is_charged_as_it_was() -> None:
    former = adopted("a", 7, is_as_configured=False, est_vram=MiB(900))
    desk = begun(Recovered(children=(former,)), sizes={"a": 100, "b": 200, "c": 0}, budget=1000)
    desk.play("r1 asks b -> stop a7, loading r1")


def test_who_is_not_used_is_unloaded_only_once_all_is_known() -> None:
    spec = spec_of("a b", scheduler=_NO_HOLDS)
    short = {A: replace(spec.models[A], ttl=Seconds(2.0)), B: spec.models[B]}
    desk = Desk(replace(spec, models=short), first_incarnation=100)
    desk.tell(Recovered(children=(adopted("a", 7),), workers=(W,)))
    assert desk.wake == 30.0

    desk.now = 10.0
    desk.tell(greets("w1"))
    assert desk.wake == 2.0  # at once, that is
    desk.play("woke -> stop a7")


def test_what_is_to_stop_when_idle_waits_until_all_is_known() -> None:
    desk = begun(Recovered(children=(adopted("a", 7),), workers=(W,)))
    desk.play("drain x a        ->")

    desk.tell(greets("w1", leases=(live("s1", "a", 7),)))
    assert desk.told() == ""
    desk.play("""
        s1 ends  -> stop a7
        a7 gone  -> answer x done
        """)


def test_what_was_told_to_stop_when_idle_stops_once_all_is_known() -> None:
    desk = begun(Recovered(children=(adopted("a", 7),), workers=(W,)))
    desk.play("""
        drain x a        ->
        w1 lost          -> stop a7
        """)


@pytest.mark.parametrize("worker", ["w1", "w9"])
def test_workers_that_nobody_waits_for_change_nothing(worker: str) -> None:
    desk = begun(Recovered(children=(adopted("a", 7),)))
    desk.tell(greets(worker))
    assert desk.told() == ""


def test_nor_is_anything_unloaded_for_want_of_memory_before() -> None:
    desk = begun(Recovered(children=(adopted("a", 7),), workers=(W,)), sizes={"a": 400}, budget=900)
    spec = desk.scheduler.state.spec
    desk.tell(ConfigApplied(spec=replace(spec, oom_guard_grace=Seconds(10.0))))
    desk.play("""
        reading free=0 line=100 a7=400 ->
        at 10 ->
        """)

    desk.tell(greets())

    desk.play("at 11 -> stop a7")


def test_what_a_slot_holds_of_a_child_that_lived_on_is_known() -> None:
    desk = begun(Recovered(children=(adopted("a", 7, context=2048),)))

    assert desk.scheduler.state.models[A].context == 2048
