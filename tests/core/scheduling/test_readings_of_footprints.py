"""What a model is measured to take: what counts is kept for the next life, and told apart from the estimate."""

from qmsup.core.scheduling import views
from qmsup.core.scheduling.effects import Effect, Remember
from qmsup.core.scheduling.events import FootprintMeasured, SeenBy
from qmsup.ids import Incarnation, ModelId
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, group, spec_of

A = ModelId("a")
BUDGET = MiB(1000)


def view_of(desk: Desk) -> views.ModelView:
    state = desk.scheduler.state
    return next(v for v in views.models(state, state.spec, Seconds(0.0)) if v.id == A)


def remembered(effects: list[Effect]) -> list[tuple[int, int, SeenBy]]:
    return [(e.peak, e.ram, e.seen_by) for e in effects if isinstance(e, Remember)]


def seen(peak: int, ram: int = 0, incarnation: int | None = 1) -> FootprintMeasured:
    return FootprintMeasured(
        model=A,
        argv=("child",),
        peak=MiB(peak),
        incarnation=None if incarnation is None else Incarnation(incarnation),
        ram=MiB(ram),
        seen_by=SeenBy.LOAD_LOG,
    )


def test_what_counts_is_to_be_remembered_once_for_each_size() -> None:
    desk = Desk(spec_of("a b", sizes={"b": 500}, vram_budget=BUDGET))
    effects: list[Effect] = []
    steps = (seen(640, incarnation=None), "r1 asks a", "a1 ready", seen(700, ram=30), "r1 accepts")

    for step in (*steps, "r1 ends", "peak a1 800", "r2 asks a", "r2 ends"):
        if isinstance(step, str):
            desk.say(step)
        else:
            desk.tell(step)
        effects += desk.effects

    assert remembered(effects) == [(700, 30, SeenBy.LOAD_LOG), (800, 30, SeenBy.TELEMETRY)]


def test_a_load_log_does_not_lower_what_telemetry_saw_and_telemetry_does() -> None:
    desk = Desk(spec_of("a b", sizes={"b": 500}, vram_budget=BUDGET))
    desk.tell(FootprintMeasured(model=A, argv=("child",), peak=MiB(800)))
    counted = []

    for step in ("r1 asks a", "a1 ready", seen(700), "r1 ends", "peak a1 750", seen(900)):
        desk.say(step) if isinstance(step, str) else desk.tell(step)
        counted.append(view_of(desk).measured)

    assert counted == [800, 800, 800, 800, 750, 900]


def test_a_load_log_lowers_what_another_one_said() -> None:
    desk = Desk(spec_of("a b", sizes={"b": 500}, vram_budget=BUDGET))
    desk.tell(seen(900, incarnation=None))

    for step in ("r1 asks a", "a1 ready", seen(700), "r1 ends"):
        desk.say(step) if isinstance(step, str) else desk.tell(step)

    assert view_of(desk).measured == 700


def test_the_estimate_what_was_measured_and_what_was_seen_are_told_apart() -> None:
    desk = Desk(spec_of("a b", sizes={"a": 600, "b": 500}, vram_budget=BUDGET))
    told = []

    for words in ("r1 asks a", "a1 ready", "peak a1 700", "r1 ends", "unload x a", "a1 gone"):
        desk.say(words)
        view = view_of(desk)
        told.append((view.est_vram, view.estimated, view.measured, view.peak))

    assert told[1:] == [
        (600, 600, None, None),
        (600, 600, None, 700),
        (700, 600, 700, 700),
        (700, 600, 700, 700),
        (700, 600, 700, None),
    ]


def test_what_a_child_takes_of_the_boxs_memory_is_shown_and_decides_nothing() -> None:
    desk = Desk(spec_of("a b", groups=(group("g", "a b"),)))
    desk.play("""
        r1 asks a -> load a1, loading r1
        a1 ready  -> grant r1
        r1 ends   ->
        """)

    effects = desk.tell(seen(0, ram=250)) + desk.tell(seen(0, ram=200))

    view = view_of(desk)
    assert (view.ram, view.measured, view.est_vram) == (250, None, 0)
    assert remembered(effects) == []
