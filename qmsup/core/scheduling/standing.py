"""What is worth knowing to the next life of the scheduler, beside the children themselves: `recovery` reads it."""

from dataclasses import dataclass

from qmsup.core.scheduling.state import State
from qmsup.ids import LeaseId, ModelId, WorkerId
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingWorker:
    """A listener's worker process that may have requests in flight."""

    worker: WorkerId
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingJob:
    """A job's lease.

    Attributes:
        until: when it ends unless renewed, on the scheduler's clock.
    """

    lease: LeaseId
    model: ModelId
    owner: str
    purpose: str
    until: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state, as far as it is not in flight.

    Attributes:
        order: models that were used, the coldest first.
        holds: until when models are held, on the scheduler's clock.
    """

    workers: tuple[StandingWorker, ...] = ()
    jobs: tuple[StandingJob, ...] = ()
    order: tuple[ModelId, ...] = ()
    holds: tuple[tuple[ModelId, Seconds], ...] = ()
    pins: tuple[ModelId, ...] = ()
    is_draining: bool = False


def standing_of(state: State) -> Standing:
    """The state now."""
    used = sorted((model.last_use, model.id) for model in state.models.values() if model.last_use)
    return Standing(
        workers=tuple(
            StandingWorker(worker=listener.worker, pid=listener.pid)
            for listener in state.listeners.values()
            if listener.pid
        ),
        jobs=tuple(
            StandingJob(
                lease=lease.id,
                model=lease.model,
                owner=lease.owner,
                purpose=lease.purpose,
                until=lease.alarm.at,
            )
            for lease in state.leases.values()
            if lease.is_job and lease.alarm is not None
        ),
        order=tuple(model for _, model in used),
        holds=tuple(
            (model.id, model.holds.until)
            for model in state.models.values()
            if model.holds.until > state.now
        ),
        pins=tuple(model.id for model in state.models.values() if model.is_pinned),
        is_draining=state.is_draining,
    )
