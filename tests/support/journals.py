"""Turns of a busy scheduler without actors, for tests of what keeps, reads and replays them."""

import random
import time
from collections.abc import Callable
from dataclasses import replace

from qmsup.actors.journal_lines import Header
from qmsup.core.scheduling.events import ConfigApplied, Event, ListenerJoined
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Epoch, Incarnation, ListenerName, ModelId, WorkerId
from qmsup.spec import AllOf, AnyOf, KeySpec, ListenerSpec, MatrixSpec, ModelSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import Desk, event_of, spec_of

SPEC = spec_of("a b c", slots=2, sizes={"a": 6, "b": 5, "c": 4}, vram_budget=MiB(11))


def header_of(spec: Spec = SPEC, epoch: int = 1) -> Header:
    """A life that began just now."""
    return Header(
        epoch=Epoch(epoch),
        first_incarnation=Incarnation(1),
        spec=spec,
        started=time.time(),
        clock=Seconds(0.0),
    )


def secretive_spec() -> Spec:
    """A configuration with a secret wherever one can be, and every shape that a Spec has."""
    a, b, c = ModelId("a"), ModelId("b"), ModelId("c")
    model = ModelSpec(
        id=a,
        argv=("child", "--api-key", "hush-1"),
        env=("TOKEN=hush-2", "X=hush-3"),
        stop_argv=("stop", "--token", "hush-5"),
    )
    listener = ListenerSpec(
        name=ListenerName("main"), api_keys=(KeySpec(key="hush-4", name="ann"),)
    )
    either = AnyOf((a, b))
    return Spec(
        models={a: model, b: ModelSpec(id=b, argv=("child",)), c: ModelSpec(id=c, argv=())},
        listeners={listener.name: listener},
        matrix=MatrixSpec(sets={"one": AllOf((either, c)), "two": either}, costs={a: 3}),
        groups=spec_of("a").groups,
    )


class Session:
    """A scheduler on a desk, its turns recorded as the actor does it."""

    def __init__(self, note: Callable[[Turn], None], spec: Spec = SPEC) -> None:
        self.desk = Desk(spec)
        self._note = note

    def say(self, *lines: str) -> None:
        """Events in words, and `at 2.5`."""
        for words in lines:
            if words.startswith("at "):
                self.desk.now = float(words[3:])
            else:
                self.tell(event_of(words))

    def tell(self, event: Event) -> None:
        """One event."""
        effects = self.desk.tell(event)
        state = self.desk.scheduler.state
        self._note(Turn(state.event, Seconds(self.desk.now), event, effects))

    def be_busy(self, seed: int, events: int = 400) -> None:
        """Many events in any order, most of which mean something; a reload among them."""
        dice = random.Random(seed)
        self.tell(ListenerJoined(listener=WorkerId("w1"), name=ListenerName("main"), pid=7))
        for n in range(events):
            self.desk.now += dice.choice((0.0, 0.001, 0.3, 2.7))
            if n == events // 2:
                self.tell(ConfigApplied(spec=replace(SPEC, vram_budget=MiB(15))))
            self.say(self._anything(dice, n))

    def _anything(self, dice: random.Random, n: int) -> str:
        state = self.desk.scheduler.state
        request = f"r{dice.randint(max(0, n - 12), n)}"
        child = next(
            (f"{m.id}{m.child.incarnation}" for m in state.models.values() if m.child), "a1"
        )
        return dice.choice(
            (
                f"r{n} asks {dice.choice('abc')} streaming timeout=5",
                f"r{n} asks {dice.choice('abcx')}",
                f"{request} accepts",
                f"{request} ends",
                f"{request} leaves",
                f"{child} {dice.choice(('ready', 'ready', 'gone', 'fails'))}",
                f"{child} ready",
                "woke",
                f"unload u{n} {dice.choice('abc')}",
            )
        )
