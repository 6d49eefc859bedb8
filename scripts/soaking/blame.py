"""Whom a fault may hurt, and how: the parts that were hit lose what was theirs, and nobody else loses anything."""

from collections.abc import Iterable, Sequence

from scripts.soaking.clients import Ended, Ending
from scripts.soaking.faults import Kind, Part, Taken

_AFTERMATH_S = 30.0
"""A model whose load failed is not tried again at once: who asks for it meanwhile is told so."""
_SLACK_S = 0.1
_OF_A_CHILD = frozenset(
    {"upstream_failed", "model_load_failed", "model_unavailable", "model_stopped"}
)
_BEGUN = _OF_A_CHILD | {"model_unloaded"}
"""How a request ends that was under way when its lease was given up and its model stopped."""
_ABSENCE = "scheduler_unavailable"
_AWAY_FOR_S = {Part.WORKER: _SLACK_S, Part.LISTENER: 15.0}
"""So long nobody takes their clients in: a worker's port has the others, a listener's has nobody."""
GRACE_S = 6.0
"""How long a box's workers wait for an absent scheduler; who freezes or muddles for less is not noticed."""
LISTENER_GRACE_S = 4.0
"""So long a worker that says nothing keeps its leases, and so long a new scheduler waits for its greeting.

What it has begun by then may be lost: others wait for the memory, and a worker that never comes back looks the same.
Its answers go on where nobody wanted it, and what it has not begun is asked for again.
"""
WORKER_GRACE_S = 5.0 + LISTENER_GRACE_S
"""For so long a worker may be frozen: it is not called silent at once."""


def is_allowed(ended: Ended, faults: Sequence[Taken], earlier: Sequence[Taken]) -> bool:
    """Whether a client may have ended so.

    Args:
        ended: how it ended.
        faults: what was done in its round.
        earlier: what was done in rounds before, at times below zero.
    """
    match ended.ending:
        case Ending.ANSWERED | Ending.LEFT:
            return True
        case Ending.REFUSED if ended.code == "wait_timeout":
            return ended.asking.timeout_ms is not None
        case Ending.REFUSED:
            everything = (*faults, *earlier)
            return any(_explains(taken, ended, everything) for taken in everything)
        case Ending.CUT:
            return any(_cuts(taken, ended) for taken in faults)
        case _:
            return False


def _explains(taken: Taken, ended: Ended, others: Iterable[Taken]) -> bool:
    if taken.until_s < ended.began_s - _AFTERMATH_S or taken.at_s > ended.ended_s + _SLACK_S:
        return False
    fault, is_absence = taken.fault, ended.code == _ABSENCE
    is_its_model = fault.name == ended.asking.model and ended.code in _OF_A_CHILD
    is_its_port = fault.name == ended.asking.listener and ended.code in _BEGUN
    match fault.kind, fault.part:
        case Kind.KILL, Part.CHILD:
            hurts = is_its_model
        case Kind.KILL, Part.SCHEDULER:
            hurts = (
                is_absence
                or _left_frozen(taken, ended, others)
                or _unwritten(ended, others)
                or _unheard(taken, ended, others)
            )
        case Kind.FREEZE, Part.SCHEDULER:
            hurts = is_absence and fault.lasts_s > GRACE_S
        case Kind.FREEZE, Part.WORKER:
            hurts = is_its_port and fault.lasts_s > WORKER_GRACE_S
        case Kind.MUDDLE, _:
            hurts = is_absence and fault.muddled.loses > 0.0
        case _:
            hurts = False
    return hurts


def _left_frozen(killed: Taken, ended: Ended, others: Iterable[Taken]) -> bool:
    """A new scheduler ends what does not answer it: the child that was frozen just then."""
    return ended.code in _OF_A_CHILD and any(
        (taken.fault.kind, taken.fault.part) == (Kind.FREEZE, Part.CHILD)
        and taken.fault.name == ended.asking.model
        and taken.at_s <= killed.at_s + _AFTERMATH_S
        and killed.at_s <= taken.until_s
        for taken in others
    )


def _unheard(killed: Taken, ended: Ended, others: Iterable[Taken]) -> bool:
    """A new scheduler waits for greetings no longer than its grace; one that is lost again and again comes later.

    So does that of a worker that is frozen meanwhile.
    """
    until_s = killed.at_s + LISTENER_GRACE_S
    return ended.code in _BEGUN and any(
        taken.at_s <= until_s
        and (
            (taken.fault.muddled.loses > 0.0 and killed.at_s <= taken.until_s)
            or (_freezes_worker_of(taken, ended) and until_s <= taken.until_s)
        )
        for taken in others
    )


def _freezes_worker_of(taken: Taken, ended: Ended) -> bool:
    fault = taken.fault
    return (fault.kind, fault.part, fault.name) == (
        Kind.FREEZE,
        Part.WORKER,
        ended.asking.listener,
    )


def _unwritten(ended: Ended, others: Iterable[Taken]) -> bool:
    """A job that the full disk did not take ends with the scheduler that alone knew of it.

    There is no third place for it, and to begin no jobs at all while the disk is full would hurt many more.
    """
    return ended.code == "job_not_found" and any(t.fault.kind is Kind.FILL for t in others)


def _cuts(taken: Taken, ended: Ended) -> bool:
    fault = taken.fault
    if fault.kind is not Kind.KILL or fault.name != ended.asking.listener:
        return False
    if fault.part not in _AWAY_FOR_S:
        return False
    away_s = _AWAY_FOR_S[fault.part]
    return ended.began_s - away_s <= taken.at_s <= ended.ended_s + _SLACK_S
