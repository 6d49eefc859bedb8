"""What is done to a box: which part is killed, when, and whom that may hurt."""

import contextlib
import random
import re
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

import psutil
from typing_extensions import override

from scripts.soaking.clients import Asking, Ended, Ending
from tests.support.box import Box

_AFTERMATH_S = 30.0
"""A model whose load failed is not tried again at once: who asks for it meanwhile is told so."""
_SLACK_S = 0.1
_NAME = re.compile(r"--name (\w+)")
_OF_A_CHILD = frozenset({"upstream_failed", "model_load_failed", "model_unavailable"})
_OF_A_SCHEDULER = frozenset({"scheduler_unavailable"})
"""Its children and all who wait outlive it."""


class Part(StrEnum):
    """What can be killed."""

    CHILD = "child"
    WORKER = "worker"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """KILL for one part. `name` is a child's model or a worker's listener; `pick` chooses among several."""

    at_s: float
    part: Part
    name: str = ""
    pick: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A fault that hit something; `at_s` from the beginning of its round."""

    fault: Fault
    at_s: float
    pid: int

    @override
    def __str__(self) -> str:
        return f"{self.at_s:.2f} s: KILL for {self.fault.part} {self.fault.name} (pid {self.pid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round: who asks, and what is killed meanwhile."""

    askings: tuple[Asking, ...]
    faults: tuple[Fault, ...]


def plan(
    dice: random.Random, models: Iterable[str], listeners: Iterable[str], parts: set[Part]
) -> Plan:
    """Throw a round; the same dice throw the same one."""
    models, listeners = sorted(models), sorted(listeners)
    askings = [
        Asking(
            at_s=dice.uniform(0, 1.5),
            listener=dice.choice(listeners),
            model=dice.choice(models),
            streams=dice.random() < 0.7,
            words=dice.choice([1, 5, 20, 60]),
            leaves_after_s=dice.uniform(0, 1.5) if dice.random() < 0.25 else None,
            timeout_ms=dice.choice([50, 1000]) if dice.random() < 0.1 else None,
            hold_ms=dice.choice([0, 300]) if dice.random() < 0.2 else None,
        )
        for _ in range(dice.randint(8, 24))
    ]
    faults = [
        _fault(dice, models, listeners, sorted(parts)) for _ in range(dice.choice([1, 1, 2, 3]))
    ]
    return Plan(
        askings=tuple(sorted(askings, key=lambda asking: asking.at_s)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at_s)),
    )


def _fault(
    dice: random.Random, models: list[str], listeners: list[str], parts: list[Part]
) -> Fault:
    weights = [{Part.CHILD: 5, Part.WORKER: 3, Part.SCHEDULER: 2}[part] for part in parts]
    (part,) = dice.choices(parts, weights)
    names = {Part.CHILD: models, Part.WORKER: listeners, Part.SCHEDULER: [""]}[part]
    return Fault(
        at_s=dice.uniform(0.1, 2.5), part=part, name=dice.choice(names), pick=dice.randrange(100)
    )


def strike(box: Box, fault: Fault, round_began: float) -> Taken | None:
    """Kill what the fault names, or another child when that model has none; None when there is nothing to kill."""
    victims = _candidates(box, fault)
    if not victims:
        return None
    name, victim = victims[fault.pick % len(victims)]
    try:
        victim.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return None
    return Taken(
        fault=replace(fault, name=name), at_s=time.monotonic() - round_began, pid=victim.pid
    )


def scheduler_of(box: Box) -> psutil.Process | None:
    """The process that decides, if there is one just now."""
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(box.process.pid).children():
            if "scheduler" in process.cmdline()[3:4]:
                return process
    return None


def _candidates(box: Box, fault: Fault) -> list[tuple[str, psutil.Process]]:
    with contextlib.suppress(psutil.Error, StopIteration):
        match fault.part:
            case Part.SCHEDULER:
                scheduler = scheduler_of(box)
                return [("", scheduler)] if scheduler else []
            case Part.WORKER:
                return [(fault.name, worker) for worker in box.listener(fault.name).children()]
            case Part.CHILD:
                children = [  # not all are the scheduler's: one that was killed left some
                    (found[1], process)
                    for process in box.processes()
                    if (found := _NAME.search(" ".join(process.cmdline())))
                ]
                return [pair for pair in children if pair[0] == fault.name] or children
            case _:
                assert_never(fault.part)
    return []


def is_allowed(ended: Ended, faults: Iterable[Taken], earlier: Iterable[Taken]) -> bool:
    """Whether a client may have ended so.

    Args:
        ended: how it ended.
        faults: what was killed in its round.
        earlier: what was killed in rounds before, at times below zero.
    """
    match ended.ending:
        case Ending.ANSWERED | Ending.LEFT:
            return True
        case Ending.REFUSED if ended.code == "wait_timeout":
            return ended.asking.timeout_ms is not None
        case Ending.REFUSED:
            return any(_explains(taken, ended) for taken in (*faults, *earlier))
        case Ending.CUT:
            return any(_cuts(taken, ended) for taken in faults)
        case _:
            return False


def _explains(taken: Taken, ended: Ended) -> bool:
    if not ended.began_s - _AFTERMATH_S <= taken.at_s <= ended.ended_s + _SLACK_S:
        return False
    match taken.fault.part:
        case Part.CHILD:
            return taken.fault.name == ended.asking.model and ended.code in _OF_A_CHILD
        case Part.SCHEDULER:
            return ended.code in _OF_A_SCHEDULER
        case _:
            return False


def _cuts(taken: Taken, ended: Ended) -> bool:
    is_its = taken.fault.part is Part.WORKER and taken.fault.name == ended.asking.listener
    return is_its and ended.began_s - _SLACK_S <= taken.at_s <= ended.ended_s + _SLACK_S
