"""Worker processes come, fall silent, speak again and go; their leases and waiters with them."""

from dataclasses import replace

from qmsup.core.scheduling import views
from qmsup.core.scheduling.effects import Grant
from qmsup.core.scheduling.events import ListenerJoined, LiveLease, RequestArrived
from qmsup.ids import Incarnation, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import WORKER, Desk, spec_of


def greeting(leases: str = "", waiting: str = "", worker: str = WORKER) -> ListenerJoined:
    """`leases` like `r1:a1`, `waiting` like `r2:a`."""
    live, waits = [], []
    for word in leases.split():
        request, _, child = word.partition(":")
        live.append(
            LiveLease(
                request=RequestId(request),
                model=ModelId(child[0]),
                incarnation=Incarnation(int(child[1:])),
            )
        )
    for word in waiting.split():
        request, _, model = word.partition(":")
        waits.append(
            RequestArrived(
                request=RequestId(request),
                listener=WorkerId(worker),
                model=ModelId(model),
                waited=Seconds(3.0),
            )
        )
    return ListenerJoined(
        listener=WorkerId(worker),
        name=ListenerName("main"),
        pid=77,
        leases=tuple(live),
        waiting=tuple(waits),
    )


def greet(desk: Desk, leases: str = "", waiting: str = "") -> str:
    desk.tell(greeting(leases, waiting))
    return desk.told()


def serving(evicts: dict[str, str] | None = None) -> Desk:
    """One request held on a1."""
    desk = Desk(spec_of("a b"), evicts=evicts)
    desk.tell(greeting())
    desk.play("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        r1 accepts ->
        """)
    return desk


def test_what_waits_in_a_worker_is_asked_by_its_greeting() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})

    assert greet(desk, waiting="r1:a r2:b") == "load a1, loading r1, r2 at 1"


def test_a_waiter_told_again_keeps_its_time() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})
    desk.now = 10.0
    desk.play("""
        r0 asks a -> load a1, loading r0
        r1 asks b -> r1 at 1
        """)

    assert greet(desk, waiting="r0:a r1:b r2:b") == "loading r0, r1 at 1, r2 at 1"
    assert [place.waited for place in views.line(desk.scheduler.state, Seconds(11.0))] == [4.0, 1.0]


def test_a_greeting_without_a_held_lease_ends_it() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("r2 asks b -> r2 at 1")

    assert greet(desk, waiting="r2:b") == "r2 at 1, stop a1, loading r2"


def test_what_a_greeting_names_is_in_use_before_anything_ends() -> None:
    """That r1's lease came back, and that r2 has one of its own, was lost on the way: its model was never idle."""
    desk = serving()
    desk.say("drain x a")

    assert greet(desk, leases="r2:a1") == ""
    assert desk.say("r2 ends") == "stop a1"


def test_a_greeting_without_a_waiter_ends_it() -> None:
    desk = Desk(spec_of("a b"), evicts={"b": "a"})
    desk.tell(greeting())
    desk.play("""
        r1 asks a -> load a1, loading r1
        r2 asks b -> r2 at 1
        """)

    assert greet(desk) == ""
    assert desk.say("r3 asks b") == "r3 at 1, abort a1"


def test_an_offer_under_way_is_not_ended_by_a_greeting() -> None:
    desk = Desk(spec_of("a b"))
    desk.tell(greeting())
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        """)

    assert greet(desk, waiting="r1:a") == "grant r1"
    assert greet(desk, leases="r1:a1") == ""
    assert desk.wake is None


def test_a_lease_on_a_child_that_serves_is_taken_over() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("r1 ends ->")

    assert greet(desk, leases="r8:a1") == ""
    assert [record.decision for record in desk.records()] == ["lease.adopted"]
    desk.play("""
        r2 asks b -> r2 at 1
        r8 ends   -> stop a1, loading r2
        """)


def test_a_greeting_takes_no_lease_from_another_worker() -> None:
    desk = serving()
    desk.tell(greeting(worker="other"))

    desk.tell(greeting(worker="other", leases="r1:a1"))

    assert [record.decision for record in desk.records()] == ["lease.not_its_own"]
    assert desk.say("r1 ends") == ""


def test_a_lease_on_a_child_that_is_gone_is_cut() -> None:
    desk = serving()
    desk.play("unload x a -> cut r1 model_unloaded, stop a1")

    assert greet(desk, leases="r1:a1 r2:z9") == "cut r1 model_unloaded, cut r2 model_unloaded"


def test_a_stream_of_the_scheduler_s_former_life_is_left_alone() -> None:
    desk = Desk(spec_of("a b"), first_incarnation=5)

    assert greet(desk, leases="r1:a3") == ""
    assert desk.say("r2 asks a") == "load a5, loading r2"
    assert desk.say("r1 ends") == ""


def test_a_silent_worker_is_granted_nothing_and_keeps_its_leases() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("""
        r2 asks b         -> r2 at 1
        r3 asks b from=w2 -> r3 at 2
        w1 silent         ->
        w1 silent         ->
        w9 silent         ->
        r1 ends           -> stop a1, loading r3
        a1 gone           -> load b2
        b2 ready          -> grant r3
        r4 asks b         -> grant r4, grant r2
        """)


def test_joiners_of_a_silent_worker_return_to_the_line() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        r1 asks a -> load a1, loading r1
        w1 silent ->
        a1 ready  ->
        """)

    assert views.line(desk.scheduler.state, Seconds(0.0))[0].because == "silent"
    assert greet(desk, waiting="r1:a") == "r1 at 1, grant r1"


def test_whoever_is_only_counted_is_so_too_once_its_worker_is_heard_again() -> None:
    desk = Desk(spec_of("a b", slots=1), evicts={"b": "a"})
    desk.play("""
        r1 asks a from=w2    -> load a1, loading r1
        a1 ready             -> grant r1
        r2 asks b tracked    -> r2 at 1
        w1 silent            ->
        r3 asks b tracked    -> r3 at 2
        """)

    assert {w.case.wants for w in desk.scheduler.state.waiters.values()} == {"tracked"}


def test_after_the_grace_a_silent_worker_has_nothing() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("""
        r2 asks b from=w2 -> r2 at 1
        r3 asks b         -> r3 at 2
        w1 silent         ->
        at 29             ->
        at 30             -> stop a1, loading r2
        """)

    assert [view.held for view in views.listeners(desk.scheduler.state)] == [0, 0]
    assert greet(desk, leases="r1:a1") == "cut r1 model_unloaded"


def test_a_worker_that_speaks_after_the_grace_gets_its_lease_back() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("""
        w1 silent ->
        at 30     ->
        """)

    assert greet(desk, leases="r1:a1") == ""
    assert desk.say("r2 asks b") == "r2 at 1"


def test_a_late_acceptance_from_a_lost_worker_revives_nothing() -> None:
    desk = Desk(spec_of("a"))
    desk.play("""
        r1 asks a  -> load a1, loading r1
        a1 ready   -> grant r1
        at 5       ->
        w1 lost    ->
        w1 lost    ->
        r1 accepts -> cut r1 model_unloaded
        """)


def test_the_grace_counts_from_when_it_fell_silent() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("""
        r2 asks b from=w2 -> r2 at 1
        at 7              ->
        w1 silent         ->
        at 20             ->
        w1 silent         ->
        at 36.9           ->
        at 37             -> stop a1, loading r2
        """)


def test_a_worker_that_is_heard_in_time_keeps_what_it_has() -> None:
    desk = serving(evicts={"b": "a"})
    desk.play("""
        w1 silent ->
        at 29     ->
        r2 asks a -> grant r2
        r2 ends   ->
        at 30     ->
        r3 asks b -> r3 at 1
        """)


def test_a_silent_worker_may_be_lost() -> None:
    desk = serving()
    desk.play("""
        w1 silent ->
        w1 lost   ->
        """)

    assert desk.wake is None
    assert not views.listeners(desk.scheduler.state)


def test_the_views_of_a_worker() -> None:
    desk = serving()
    desk.play("r2 asks b -> r2 at 1")

    view = views.listeners(desk.scheduler.state)[0]

    assert (view.worker, view.name, view.pid) == (WORKER, "main", 77)
    assert (view.waiting, view.held, view.is_silent) == (1, 1, False)


HOLDING = spec_of("a b", scheduler=SchedulerSpec())


def told_by_a_worker(**lease: object) -> Desk:
    """A ready, r1 is in flight there; after its worker's long silence only the greeting tells of it."""
    desk = Desk(HOLDING, evicts={"b": "a"})
    desk.tell(greeting())
    desk.play("""
        load x a  -> load a1
        a1 ready  -> answer x done
        r1 asks a -> grant r1
        r1 accepts ->
        w1 silent ->
        at 30     ->
        """)
    live = LiveLease(request=RequestId("r1"), model=ModelId("a"), incarnation=Incarnation(1))
    desk.tell(replace(greeting(), leases=(replace(live, **lease),)))  # type: ignore[arg-type]
    desk.play("r2 asks b from=w2 patience=99 -> r2 at 1")
    return desk


def test_a_lease_told_again_holds_as_it_would_have() -> None:
    told_by_a_worker().play("""
        r1 ends tool_calls ->
        at 39.9 ->
        at 40   -> stop a1, loading r2
        """)
    told_by_a_worker().play("r1 ends finished -> stop a1, loading r2")
    told_by_a_worker(hold=Seconds(0.0)).play("r1 ends tool_calls -> stop a1, loading r2")
    told_by_a_worker(hold=Seconds(2.0)).play("""
        r1 ends finished ->
        at 32 -> stop a1, loading r2
        """)


def test_a_lease_told_again_is_of_the_same_conversation_as_before() -> None:
    told_by_a_worker(conversation="x").play("""
        r1 ends tool_calls ->
        at 31 ->
        r3 asks a of=x from=w2 -> grant r3
        r3 ends finished -> stop a1, loading r2
        """)
    told_by_a_worker(conversation="x").play("""
        r1 ends tool_calls ->
        at 31 ->
        r3 asks a of=y from=w2 -> grant r3
        r3 ends finished ->
        at 40 -> stop a1, loading r2
        """)


def test_without_a_conversation_it_is_of_the_same_client_as_before() -> None:
    told_by_a_worker(client="k").play("""
        r1 ends tool_calls ->
        at 31 ->
        r3 asks a client=k -> grant r3
        r3 ends finished -> stop a1, loading r2
        """)
    told_by_a_worker(client="k").play("""
        r1 ends tool_calls ->
        at 31 ->
        r3 asks a client=other -> grant r3
        r3 ends finished ->
        at 40 -> stop a1, loading r2
        """)


def test_a_lease_told_again_tells_how_long_it_waited_when_it_is_asked_for_again() -> None:
    desk = told_by_a_worker(waited=Seconds(1.5))

    desk.say("r1 asks a")

    assert [effect.waited for effect in desk.effects if isinstance(effect, Grant)] == [1.5]
