"""What a signal to the process means to the scheduler actor."""

import contextlib
from dataclasses import dataclass
from typing import TypeVar

import pykka

from qmsup.core.scheduling.events import ShutdownAsked

A = TypeVar("A", bound=pykka.Actor)


@dataclass(frozen=True, slots=True)
class StopNow:
    """Told a second time to end: stop every child without waiting for anybody."""


@dataclass(frozen=True, slots=True)
class ReloadNow:
    """Read the configuration file again, and put it in force if it is good; the log tells."""


def reload_of(ref: pykka.ActorRef[A]) -> None:
    """Have the scheduler read its configuration again."""
    with contextlib.suppress(pykka.ActorDeadError):  # it has ended
        ref.tell(ReloadNow())


def shutdown_of(ref: pykka.ActorRef[A], *, at_once: bool) -> None:
    """Have the scheduler end: in order, or at once."""
    with contextlib.suppress(pykka.ActorDeadError):  # it has ended already
        ref.tell(StopNow() if at_once else ShutdownAsked())
