"""What a model is measured to take: what counts is kept for the next life, and told apart from the estimate."""

from qmsup.core.scheduling import views
from qmsup.core.scheduling.effects import Effect, Remember
from qmsup.core.scheduling.memory_events import FootprintMeasured, SeenBy
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
    counted: list[int | None] = []

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


def measured(*steps: str) -> list[int | None]:
    """What a was measured to take after each of these steps; it is charged 600, and readings go on."""
    desk = Desk(spec_of("a b", sizes={"a": 600, "b": 300}, vram_budget=BUDGET))
    desk.say("reading free=1000")
    counted: list[int | None] = []
    for words in steps:
        desk.say(words)
        counted.append(view_of(desk).measured)
    return counted


LOADED = ("r1 asks a", "a1 ready", "peak a1 400", "r1 accepts")


def test_what_was_seen_before_the_first_answer_lowers_nothing_until_it_is_read_again() -> None:
    """As it answers it takes more, and a model that is loaded beside it must not be given that."""
    steps = (*LOADED, "r1 ends", "peak a1 550", "looked", "peak a1 580")

    assert measured(*steps)[4:] == [None, None, 550, 580]


def test_what_takes_no_more_as_it_answers_is_known_when_that_was_read() -> None:
    assert measured(*LOADED, "r1 ends", "looked")[4:] == [None, 400]


def test_what_was_seen_to_take_all_that_it_is_charged_counts_at_once() -> None:
    steps = ("r1 asks a", "a1 ready", "peak a1 700", "r1 accepts", "r1 ends")

    assert measured(*steps)[-1] == 700


def test_a_reading_that_was_under_way_proves_nothing() -> None:
    steps = ("at 5", "r2 asks b", "r1 ends", "looked", "looked")

    assert measured(*LOADED, *steps)[-3:] == [None, None, 400]


def test_one_that_does_not_come_or_tells_nothing_proves_nothing_either() -> None:
    steps = ("r1 ends", "at 9", "at 12", "r2 asks a", "r2 ends", "r3 asks b", "blind")

    told = measured(*LOADED, *steps, "looked", "reading free=800", "looked")

    assert told == [None] * len(told)


def test_what_a_child_that_is_gone_used_is_not_asked_for_any_more() -> None:
    desk = Desk(spec_of("a b", sizes={"a": 600, "b": 300}, vram_budget=BUDGET))
    for words in ("reading free=1000", *LOADED, "r1 ends", "a1 gone", "looked"):
        desk.say(words)

    memory = desk.scheduler.state.memory
    assert (memory.unproven, memory.looking, memory.footprints) == (set(), None, {})
