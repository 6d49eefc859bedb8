"""From any point of a swap, whatever happens next leads back to a sane state.

A swap is driven step by step; after each step every possible event is tried, in a world of its own. Then the world goes
on as it would: processes end or become ready, memory comes back, requests end. Whoever asked must have been answered,
and whoever asks afterwards is served.
"""

import copy

import pytest

from qmsup.core.scheduling.effects import (
    AbortStart,
    Effect,
    EnsureReady,
    Stop,
)
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.ids import Incarnation
from qmsup.spec import Spec
from qmsup.units import MiB
from tests.support.scheduling import Desk, spec_of

SIZES = {"a": 400, "b": 600, "c": 100}
SPEC = spec_of("a b c", slots=2, sizes=SIZES, vram_budget=MiB(700))

STEPS = {
    "evicting": "r2 asks b",
    "settling": "a1 gone",
    "most is back": "back a1 350 550",
    "loading": "back a1 400 600",
    "ready": "b2 ready",
    "accepted": "r2 accepts",
    "over": "r2 ends",
}
"""The swap: a runs and is idle, b is asked for. Each step leads to the point it is named for."""

EVENTS = [
    "r3 asks a",
    "r3 asks b",
    "r3 asks c",
    "r2 leaves",
    "r2 accepts",
    "r2 declines",
    "r2 ends",
    "w1 lost",
    "w1 silent",
    "w1 joins",
    "load l a",
    "load l b",
    "lease l j1 a",
    "lease l j1 b",
    "release l j1",
    "unload u a",
    "unload u b",
    "unload u",
    "drain u a",
    "drain u b",
    "pin p a",
    "pin p b",
    "close d",
    "a1 gone",
    "a1 fails",
    "a1 ready",
    "b2 gone",
    "b2 fails",
    "b2 ready",
    "b2 starting",
    "reading free=0",
    "reading free=200 ceiling=300 a1=400",
    "reading free=1000",
    "blind",
    "back a1 400 600",
    "peak b2 500",
    "peak b2 900",
    "at 3",
    "at 100",
    "shutdown",
    "reload without b",
    "reload without a",
    "reload with less",
]


class Interrupted:
    """A desk, and the world around it as far as it has to go on."""

    def __init__(self) -> None:
        self.desk = Desk(SPEC)
        self.stopping: dict[Incarnation, str] = {}
        self.starting: dict[Incarnation, str] = {}

    def say(self, words: str) -> None:
        """One event, and what it makes of the world."""
        name, *rest = words.split()
        if rest and rest[0] in ("gone", "fails"):
            self.stopping = {i: told for i, told in self.stopping.items() if told != name}
            self.starting = {i: told for i, told in self.starting.items() if told != name}
        if rest and rest[0] == "ready":
            self.starting = {i: told for i, told in self.starting.items() if told != name}
        if words.startswith("reload"):
            self.desk.tell(ConfigApplied(spec=_spec_after(words)))
        else:
            self.desk.say(words)
        if words.startswith("at "):
            self.desk.say("woke")
        self.take(self.desk.effects)

    def take(self, effects: list[Effect]) -> None:
        """Children are owned by somebody who is slow."""
        for effect in effects:
            match effect:
                case EnsureReady(model=model, incarnation=incarnation):
                    self.starting[incarnation] = f"{model}{incarnation}"
                case Stop() | AbortStart():
                    self.starting.pop(effect.incarnation, None)
                    self.stopping[effect.incarnation] = f"{effect.model}{effect.incarnation}"
                case _:
                    pass

    def goes_on(self) -> None:
        """Until nothing more happens by itself."""
        state = self.desk.scheduler.state
        for _ in range(60):
            in_flight = [lease.id for lease in state.leases.values() if not lease.is_job]
            if self.stopping:
                self.say(f"{next(iter(self.stopping.values()))} gone")
            elif self.starting:
                self.say(f"{next(iter(self.starting.values()))} ready")
            elif in_flight:
                self.say(f"{in_flight[0]} ends")
            elif state.waiters or state.swaps or state.line.size:
                self.desk.now += 5.0
                self.say("woke")
            else:
                return
        raise AssertionError(f"{state.waiters} wait for ever, {state.swaps}")


def _spec_after(words: str) -> Spec:
    match words:
        case "reload without b":
            return spec_of("a c", slots=2, sizes=SIZES, vram_budget=MiB(700))
        case "reload without a":
            return spec_of("b c", slots=2, sizes=SIZES, vram_budget=MiB(700))
        case _:
            return spec_of("a b c", slots=1, sizes=SIZES, vram_budget=MiB(500))


def interrupted_after(point: str) -> Interrupted:
    """The swap, up to and with this step."""
    world = Interrupted()
    for words in ("r1 asks a", "a1 ready", "r1 accepts", "r1 ends", "reading free=200 a1=400"):
        world.say(words)
    for name, words in STEPS.items():
        world.say(words)
        if name == point:
            break
    return world


@pytest.mark.parametrize("point", STEPS)
@pytest.mark.parametrize("event", EVENTS)
def test_whatever_happens_the_world_goes_on(point: str, event: str) -> None:
    world = interrupted_after(point)

    world.say(event)
    world.goes_on()

    state = world.desk.scheduler.state
    assert all(lease.is_job for lease in state.leases.values())
    if state.ending is not None:
        return
    # Afterwards everything is as before: who asks is served.
    for words in ("open o", "blind", "unpin q a", "unpin s b", "release x j1", "at 1000"):
        world.say(words)
    world.say("r9 asks c from=w9")
    world.goes_on()
    assert "r9" not in state.refused


@pytest.mark.parametrize("point", STEPS)
def test_two_events_at_once_are_no_worse(point: str) -> None:
    # In a row, without the world going on in between: the pairs that meet in the swap itself.
    start = interrupted_after(point)
    for first in EVENTS[:20]:
        one = copy.deepcopy(start)
        one.say(first)
        for second in EVENTS[15:]:
            two = copy.deepcopy(one)
            two.say(second)
            two.goes_on()
