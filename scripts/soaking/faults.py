"""What can be done to a box, and the dice that say when and to what."""

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

from scripts.soaking.clients import Asking
from scripts.soaking.muddle import CLEAR, Muddled


class Kind(StrEnum):
    """What is done, in the words that count it."""

    KILL = "killed"
    FREEZE = "frozen"
    """STOP, and CONT some time later: a machine that swaps, a debugger, a virtual machine that is moved."""
    MUDDLE = "messages muddled"
    STEAL = "port stolen"
    FILL = "disk filled"


class Part(StrEnum):
    """What can be killed or frozen."""

    CHILD = "child"
    WORKER = "worker"
    LISTENER = "listener"
    """The parent of a port's workers, which end with it."""
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of them.

    Attributes:
        part: for KILL and FREEZE; None for the others.
        name: a child's model; a listener, its own or its worker's.
        pick: chooses among several.
        lasts_s: until it is over; a kill is at once.
        muddled: for MUDDLE.
    """

    at_s: float
    kind: Kind
    part: Part | None = None
    name: str = ""
    pick: int = 0
    lasts_s: float = 0.0
    muddled: Muddled = CLEAR

    @property
    def words(self) -> str:
        """Such as `killed worker`."""
        return f"{self.kind} {self.part}" if self.part else str(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A fault that hit something; times from the beginning of its round.

    Attributes:
        with_it: who ends with what was killed.
    """

    fault: Fault
    at_s: float
    pid: int = 0
    with_it: frozenset[int] = frozenset()

    @property
    def until_s(self) -> float:
        """When it was over."""
        return self.at_s + self.fault.lasts_s

    @override
    def __str__(self) -> str:
        fault = self.fault
        lasting = f" for {fault.lasts_s:.2f} s" if fault.lasts_s else ""
        whom = f" {fault.name} (pid {self.pid})" if self.pid else ""
        how = f": {fault.muddled}" if fault.muddled is not CLEAR else ""
        return f"{self.at_s:.2f} s: {fault.words}{whom}{lasting}{how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round: who asks, and what is done meanwhile."""

    askings: tuple[Asking, ...]
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """What a round is thrown for.

    Attributes:
        painters: models that take jobs; all others chat.
        kinds: what may be done.
        first: what is done in any case.
        parts: whom kills and freezes may hit.
        longest_s: no freeze is longer.
    """

    models: Collection[str]
    painters: Collection[str] = ()
    listeners: Collection[str]
    kinds: Sequence[Kind] = tuple(Kind)
    first: Kind | None = None
    parts: Collection[Part] = tuple(Part)
    longest_s: float = 11.0


def plan(dice: random.Random, stakes: Stakes) -> Plan:
    """Throw a round; the same dice throw the same one."""
    askings = [_asking(dice, stakes) for _ in range(dice.randint(8, 20))]
    kinds = [stakes.first] if stakes.first else []
    weights = [_WEIGHTS[kind] for kind in stakes.kinds]
    while len(kinds) < (wanted := dice.choice([1, 2, 3, 4])):
        kinds += dice.choices(stakes.kinds, weights, k=wanted - len(kinds))
    faults = [_fault(dice, kind, stakes) for kind in _each_once(kinds)]
    return Plan(
        askings=tuple(sorted(askings, key=lambda asking: asking.at_s)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_s)),
    )


_WEIGHTS = {Kind.KILL: 5, Kind.FREEZE: 4, Kind.MUDDLE: 2, Kind.STEAL: 2, Kind.FILL: 1}
_PART_WEIGHTS = {Part.CHILD: 8, Part.WORKER: 6, Part.SCHEDULER: 6, Part.LISTENER: 1}
_ALONE = frozenset({Kind.MUDDLE, Kind.STEAL, Kind.FILL})
"""There is one of what they are done to."""


def _each_once(kinds: Iterable[Kind]) -> list[Kind]:
    kept: list[Kind] = []
    for kind in kinds:
        if kind not in _ALONE or kind not in kept:
            kept.append(kind)
    return kept


def _asking(dice: random.Random, stakes: Stakes) -> Asking:
    model = dice.choice(sorted(stakes.models))
    return Asking(
        at_s=dice.uniform(0, 1.5),
        listener=dice.choice(sorted(stakes.listeners)),
        model=model,
        is_job=model in stakes.painters,
        streams=dice.random() < 0.7,
        words=dice.choice([1, 5, 20, 60]),
        leaves_after_s=dice.uniform(0, 1.5) if dice.random() < 0.25 else None,
        timeout_ms=dice.choice([50, 1000]) if dice.random() < 0.1 else None,
        hold_ms=dice.choice([0, 300]) if dice.random() < 0.2 else None,
    )


def _fault(dice: random.Random, kind: Kind, stakes: Stakes) -> Fault:
    at_s, pick = dice.uniform(0.1, 2.5), dice.randrange(100)
    match kind:
        case Kind.KILL | Kind.FREEZE:
            parts = sorted(stakes.parts)
            weights = [_PART_WEIGHTS[part] for part in parts]
            (part,) = dice.choices(parts, weights)
            names = {
                Part.CHILD: sorted(stakes.models),
                Part.WORKER: sorted(stakes.listeners),
                Part.LISTENER: sorted(stakes.listeners),
                Part.SCHEDULER: [""],
            }[part]
            return Fault(
                at_s=at_s,
                kind=kind,
                part=part,
                name=dice.choice(names),
                pick=pick,
                lasts_s=_spell(dice, stakes.longest_s) if kind is Kind.FREEZE else 0.0,
            )
        case Kind.MUDDLE:
            muddled = Muddled(
                loses=dice.choice([0.0, 0.02, 0.1, 0.3]),
                repeats=dice.choice([0.0, 0.1, 0.5]),
                latest_s=dice.choice([0.0, 0.05, 1.5]),
            )
            return Fault(at_s=at_s / 3, kind=kind, lasts_s=dice.uniform(1.0, 6.0), muddled=muddled)
        case Kind.STEAL:
            return Fault(at_s=at_s / 3, kind=kind, pick=pick, lasts_s=dice.uniform(1.0, 4.0))
        case Kind.FILL:
            return Fault(at_s=at_s / 3, kind=kind, lasts_s=dice.uniform(1.0, 4.0))


def _spell(dice: random.Random, longest_s: float) -> float:
    """Of a freeze: within a heartbeat, past the one that cuts connections, or past an offer and all graces."""
    shortest, longest = dice.choices([(0.05, 0.7), (1.3, 3.0), (4.2, 11.0)], [4, 4, 2])[0]
    return min(dice.uniform(shortest, longest), longest_s)
