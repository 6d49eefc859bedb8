"""Who is there, as the telemetry is told."""

from qmsup.actors.sightings import Watched, is_spawning, limits_of, watch_only
from qmsup.core.vram.attribution import Stage
from qmsup.core.vram.reading import Limits
from qmsup.ids import Incarnation
from qmsup.spec import Pool, SchedulerSpec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of


def told(desk: Desk, **pids: int) -> list[Watched]:
    numbers = {Incarnation(int(name[1:])): pid for name, pid in pids.items()}
    return list(watch_only(desk.scheduler.state, numbers).children)


def stages(desk: Desk) -> list[tuple[int, str, int | None]]:
    return [(child.incarnation, child.stage, child.pid) for child in told(desk, _1=77)]


def test_a_child_is_told_of_from_the_order_to_start_to_its_end() -> None:
    desk = Desk(spec_of("a b"))
    seen = []
    for words in ("load x a", "a1 starting", "a1 ready", "unload y a", "a1 gone"):
        desk.say(words)
        seen.append(stages(desk))

    assert seen == [
        [(1, "starting", None)],
        [(1, "starting", 1001)],
        [(1, "ready", 1001)],
        [(1, "stopping", 1001)],
        [],
    ]


def test_a_start_without_a_process_is_about_to_have_one() -> None:
    desk = Desk(spec_of("a b"))
    seen = []
    for words in ("load x a", "a1 starting", "a1 ready", "unload y a", "load z a"):
        seen.append(is_spawning(desk.scheduler.state))
        desk.say(words)

    assert [*seen, is_spawning(desk.scheduler.state)] == [False, True, False, False, False, True]


def test_an_older_start_that_is_still_stopping_is_told_of_too() -> None:
    desk = Desk(spec_of("a b"))
    for words in ("load x a", "a1 starting", "a1 ready", "unload y a", "load z a"):
        desk.say(words)

    assert stages(desk) == [(1, "stopping", 77), (2, "starting", None)]


def test_what_was_started_is_named_and_where_it_is_to_be_seen() -> None:
    desk = Desk(
        spec_of(
            "a b",
            sizes={"a": 400},
            groups=(group("cpu", "b", pool=Pool.RAM, exclusive=False),),
        )
    )
    desk.say("load x a")
    desk.say("load y b")

    a, b = told(desk)
    assert (a.model, a.argv, a.is_on_gpu, a.size) == ("a", ("child",), True, 400)
    assert (b.model, b.is_on_gpu) == ("b", False)
    assert a.stage is Stage.STARTING


def test_what_the_operator_says_holds() -> None:
    spec = spec_of(
        "a",
        vram_budget=MiB(1),
        ram_budget=MiB(2),
        oom_guard_reserve=MiB(3),
        scheduler=SchedulerSpec(settle=Seconds(4.0)),
    )

    assert limits_of(spec) == Limits(
        budget=MiB(1), ram_budget=MiB(2), reserve=MiB(3), settle=Seconds(4.0)
    )
