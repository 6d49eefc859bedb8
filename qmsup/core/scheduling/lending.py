"""Lent leases: a worker keeps one for a moment after its work, and uses it for its next requests.

A request of a few milliseconds would pay more for asking than for its work. A lent lease is in flight for every rule
until the worker gives it back, which it does when its time is over, and at once when it is recalled: so nothing that
is decided here has to know of it, and whoever has to wait waits for it no longer than a message takes.
"""

from qmsup.core.scheduling.effects import Recall
from qmsup.core.scheduling.records import Listener, Model
from qmsup.core.scheduling.state import State
from qmsup.spec import HoldOn
from qmsup.units import Seconds

_NOT = Seconds(0.0)


def for_how_long(state: State, model: Model, listener: Listener) -> Seconds:
    """How long the lease that is being offered may be kept, from now; 0 = it ends with its work.

    Only while nobody waits and there is room for others, where one request has just followed another, and where the
    end of a single one decides nothing: renders lock others out, and with `holdOn: always` each end begins a hold.
    Nor where few may wait: what is only kept would have others refused.
    """
    scheduler = state.spec.scheduler
    if (
        not listener.lends
        or is_unwanted(state)
        or scheduler.hold_on is HoldOn.ALWAYS
        or not _is_hot(model, Seconds(state.now - scheduler.lend))
        or len(model.leases) >= model.limit
        or (model.spec.queue_max is not None and model.spec.queue_max < model.limit)
        or model.running_spec.renders
    ):
        return _NOT
    if scheduler.lend > 0:
        state.lent_to[listener.worker] = None
    return scheduler.lend


def _is_hot(model: Model, since: Seconds) -> bool:
    """Whether a request was served lately: one that comes alone is likely to be followed by nothing."""
    is_proven = model.child is not None and model.child.has_served
    return is_proven and (len(model.leases) > 1 or model.idle_since >= since)


def is_unwanted(state: State) -> bool:
    """Whether somebody may wait for what is lent."""
    return bool(state.line.size) or state.law.is_doubtful or _is_closing_down(state)


def recall(state: State) -> None:
    """Have every worker give back what it only keeps, and keep nothing until it is lent something anew."""
    for worker in state.lent_to:
        state.emit(Recall(cause=state.event, listener=worker))
    state.lent_to.clear()


def _is_closing_down(state: State) -> bool:
    return state.is_draining or state.ending is not None or state.missing is not None
