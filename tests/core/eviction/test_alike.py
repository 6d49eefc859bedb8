from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from qmsup.core.eviction.alike import Alike
from qmsup.ids import ModelId

A, B, C = (ModelId(model) for model in "abc")


@dataclass(frozen=True)
class Counting:
    """Stops whatever runs, tells a from all others, and counts how often it is asked."""

    name: str = "counting"
    asked: list[ModelId] = field(default_factory=list)

    def eviction_for(self, target: ModelId, running: Sequence[ModelId]) -> tuple[ModelId, ...]:
        self.asked.append(target)
        return (*running,)

    def likeness(self, target: ModelId) -> Hashable:
        return target == A


def test_targets_of_one_likeness_are_asked_about_once_while_the_same_models_run() -> None:
    policy = Counting()
    alike = Alike(policy)
    running = (ModelId("x"), ModelId("y"))

    assert [alike.eviction_for(target, running) for target in (A, B, C, B, A)] == [running] * 5
    assert policy.asked == [A, B]


def test_other_models_or_another_order_of_them_are_asked_about_anew() -> None:
    policy = Counting()
    alike = Alike(policy)

    runs = [(ModelId("x"), ModelId("y")), (ModelId("y"), ModelId("x")), (), ()]
    assert [alike.eviction_for(A, running) for running in runs] == runs
    assert policy.asked == [A, A, A]
