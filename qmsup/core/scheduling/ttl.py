"""A model that nobody has used for its time to live is unloaded. There is one deadline for it while it is idle."""

from qmsup.core.scheduling.records import Idle, Model
from qmsup.core.scheduling.state import State
from qmsup.units import Seconds


def watch(state: State, model: Model) -> None:
    """Have the deadline where it belongs: to be called after whatever may have moved it."""
    alarm = model.idle
    if alarm is None and not model.spec.ttl:
        return
    at = _end_of(model) if state.missing is None else None
    if alarm is not None and alarm.is_live and alarm.at == at:
        return
    state.deadlines.cancel(alarm)
    model.idle = None if at is None else state.deadlines.add(at, Idle(model))


def _end_of(model: Model) -> Seconds | None:
    """When it has been idle for long enough; None = it is not idle, or may stay for ever.

    A hold keeps it beyond that: somebody is likely to come back.
    """
    ttl = model.spec.ttl
    if not ttl or model.leases or model.is_pinned or not model.is_ready:
        return None
    return Seconds(max(model.idle_since + ttl, model.holds.until))
