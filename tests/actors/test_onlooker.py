from qmsup.actors.onlooker import Onlooker
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.vram.reading import Reading
from qmsup.ids import AskId, EventNumber, Incarnation, ModelId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds

_SPEC = Spec(models={ModelId("m"): ModelSpec(id=ModelId("m"), argv=("x",))}, vram_budget=MiB(9))
_STATE = Scheduler(_SPEC).state
_NOW = Seconds(50.0)
_DECISION = Record(cause=EventNumber(7), decision="swap.started", model=ModelId("m"))


def test_while_nobody_looks_on_nothing_is_due_and_decisions_are_few() -> None:
    onlooker = Onlooker(1000.0)

    onlooker.stir(_NOW)
    for _ in range(300):
        onlooker.note(_DECISION, _NOW)

    assert onlooker.due is None
    assert len(onlooker.recent) == 200
    assert onlooker.recent[0]["time"] == 1050.0
    assert onlooker.look(_STATE, _SPEC, _NOW).decisions == ()


def test_a_look_is_due_soon_after_somebody_came_and_after_something_happened() -> None:
    onlooker = Onlooker(1000.0)

    onlooker.want(frozenset({"model.m"}), _NOW)
    due = [onlooker.due]
    look = onlooker.look(_STATE, _SPEC, Seconds(50.1))
    due.append(onlooker.due)
    onlooker.stir(Seconds(60.0))
    onlooker.stir(Seconds(60.05))
    due.append(onlooker.due)
    onlooker.want(frozenset(), _NOW)
    due.append(onlooker.due)

    assert due == [50.1, None, 60.1, None]
    assert list(look.bodies) == ["model.m"]
    assert look.kinds == {"model"}


def test_decisions_are_told_one_by_one_to_who_wants_them() -> None:
    onlooker = Onlooker(1000.0)
    onlooker.want(frozenset({"decision.swap"}), _NOW)

    onlooker.note(_DECISION, _NOW)

    look = onlooker.look(_STATE, _SPEC, _NOW)
    assert [(at, topic) for at, topic, _ in look.decisions] == [(1050.0, "decision.swap.started")]
    assert look.bodies == {}
    assert onlooker.look(_STATE, _SPEC, _NOW).decisions == ()


def test_who_asks_for_the_state_gets_all_of_it() -> None:
    onlooker = Onlooker(1000.0)
    onlooker.reading = Reading(
        because="", total=MiB(24), used=MiB(9), foreign=MiB(2), held={Incarnation(1): MiB(7)}
    )

    look = onlooker.look(_STATE, _SPEC, _NOW, AskId("a"))

    assert look.kinds == {"model", "line", "lease", "vram"}
    assert look.bodies["vram.all"] == {
        "total_mib": 24,
        "used_mib": 9,
        "foreign_mib": 2,
        "held_mib": 7,
        "because": None,
        "budget_mib": 9,
        "ceiling_mib": None,
        "free_mib": None,
        "ours_mib": None,
    }
