"""Carries the core's effects out, and logs each decision: the log is the list of decisions."""

from collections.abc import Callable
from typing import assert_never

from qmsup.actors.gateway import Gateway
from qmsup.actors.job_desk import JobDesk
from qmsup.actors.tree import ProcessTree
from qmsup.actors.turn_log import TurnLog
from qmsup.core.scheduling.effects import (
    AbortStart,
    Answer,
    ArmWake,
    Cut,
    Effect,
    EndProcess,
    EnsureReady,
    Grant,
    LineMoved,
    ReadMemory,
    Recall,
    Record,
    Refuse,
    Remember,
    Stop,
    TellLoading,
)
from qmsup.log import Log


class Orders:
    """The hands of the scheduler actor. Clock and telemetry are its own: what is for those is not done here."""

    def __init__(
        self,
        gateway: Gateway,
        processes: ProcessTree,
        jobs: JobDesk,
        on_end: Callable[[], None],
        remember: Callable[[Remember], None],
    ) -> None:
        self._gateway = gateway
        self._processes = processes
        self._jobs = jobs
        self._on_end = on_end
        self._remember = remember
        self._log = TurnLog(Log("decision"))

    def write_log(self) -> None:
        """Write down what was decided since the last time, once everybody else has been told."""
        self._log.write()

    def carry_out(self, effect: Effect) -> None:
        """Do it, without waiting for its result: that comes back as an event."""
        match effect:
            case Grant() | LineMoved() | TellLoading() | Recall():
                self._gateway.tell(effect)
            case Refuse() | Cut():
                self._gateway.tell(effect)
                self._log.info(
                    "request.refused" if isinstance(effect, Refuse) else "request.cut",
                    request=effect.request,
                    code=effect.refusal.code,
                    cause=effect.cause,
                )
            case EnsureReady() | Stop() | AbortStart():
                self._processes.tell(effect)
            case Answer():
                if not self._jobs.answered(effect):
                    self._gateway.answer(effect)
            case Record():
                self._jobs.heard(effect)
                _record(self._log, effect)
            case EndProcess():
                self._on_end()
            case Remember():
                self._remember(effect)
            case ArmWake() | ReadMemory():
                pass  # the actor's own
            case _:
                assert_never(effect)


def _record(log: TurnLog, record: Record) -> None:
    log.info(
        record.decision,
        model=record.model,
        request=record.request,
        evicts=",".join(record.evicts) or None,
        because=record.because or None,
        cause=record.cause,
    )
