import pytest

from scripts.soaking.blame import is_allowed
from scripts.soaking.clients import Asking, Ended, Ending
from scripts.soaking.faults import Fault, Kind, Part, Taken
from scripts.soaking.muddle import Muddled


def done(
    kind: Kind,
    part: Part | None = None,
    name: str = "",
    at_s: float = 2.0,
    lasts_s: float = 0.0,
    loses: float = 0.0,
) -> Taken:
    fault = Fault(
        at_s=at_s,
        kind=kind,
        part=part,
        name=name,
        lasts_s=lasts_s,
        muddled=Muddled(loses=loses, repeats=0.5, latest_s=1.0),
    )
    return Taken(fault=fault, at_s=at_s, pid=1)


CHILD = done(Kind.KILL, Part.CHILD, "m")
WORKER = done(Kind.KILL, Part.WORKER, "main")
LISTENER = done(Kind.KILL, Part.LISTENER, "main")
SCHEDULER = done(Kind.KILL, Part.SCHEDULER)
STILL_CHILD = done(Kind.FREEZE, Part.CHILD, "m", at_s=1.0, lasts_s=3.0)
STILL_WORKER = done(Kind.FREEZE, Part.WORKER, "main", at_s=1.0, lasts_s=3.0)
STILL_SCHEDULER = done(Kind.FREEZE, Part.SCHEDULER, at_s=1.0, lasts_s=3.0)
DEAD_WORKER = done(Kind.FREEZE, Part.WORKER, "main", at_s=1.0, lasts_s=10.0)
DEAD_SCHEDULER = done(Kind.FREEZE, Part.SCHEDULER, at_s=1.0, lasts_s=8.0)
LOSS = done(Kind.MUDDLE, at_s=1.0, lasts_s=3.0, loses=0.1)
DELAY = done(Kind.MUDDLE, at_s=1.0, lasts_s=3.0)
THEFT = done(Kind.STEAL, at_s=1.0, lasts_s=3.0)
FULL = done(Kind.FILL, at_s=1.0, lasts_s=3.0)
ALL = [CHILD, WORKER, SCHEDULER, DEAD_WORKER, DEAD_SCHEDULER, LOSS, THEFT, FULL]

FAILED, LOAD, AWAY = "upstream_failed", "model_load_failed", "scheduler_unavailable"

# Model, listener, from, to, ending, code; what was done; whether it may.
MAY = {
    "an answer always may": ("m main", 0, 3, "answered", "", [CHILD], True),
    "who left always may": ("m main", 0, 3, "left", "", [], True),
    "no error without a fault": ("m main", 0, 3, "refused", FAILED, [], False),
    "a dead child fails its own": ("m main", 0, 3, "refused", FAILED, [CHILD], True),
    "a dead child fails no other": ("n main", 0, 3, "refused", FAILED, [CHILD], False),
    "a dead child ends its jobs": ("m main", 0, 3, "refused", "model_stopped", [CHILD], True),
    "a dead child cuts nobody": ("m main", 0, 3, "cut", "", [CHILD], False),
    "not yet dead it fails nobody": ("m main", 0, 1, "refused", FAILED, [CHILD], False),
    "a load is not tried at once": ("m main", 9, 9, "refused", LOAD, [CHILD], True),
    "but it is later": ("m main", 40, 41, "refused", LOAD, [CHILD], False),
    "a dead worker cuts its own": ("m main", 0, 3, "cut", "", [WORKER], True),
    "a dead worker cuts no other port": ("m side", 0, 3, "cut", "", [WORKER], False),
    "a dead worker cuts nobody later": ("m main", 3, 4, "cut", "", [WORKER], False),
    "a dead listener takes nobody in for a while": ("m main", 9, 9, "cut", "", [LISTENER], True),
    "but not for long": ("m main", 30, 31, "cut", "", [LISTENER], False),
    "other ports take theirs": ("m side", 0, 3, "cut", "", [LISTENER], False),
    "a dead worker is no error": ("m main", 0, 3, "refused", FAILED, [WORKER], False),
    "children outlive a scheduler": ("n side", 0, 3, "refused", FAILED, [SCHEDULER], False),
    "its absence is felt": ("n side", 0, 3, "refused", AWAY, [SCHEDULER], True),
    "a dead scheduler cuts nobody": ("n side", 0, 3, "cut", "", [SCHEDULER], False),
    "who freezes fails nobody": (
        "m main",
        0,
        3,
        "refused",
        FAILED,
        [STILL_CHILD, STILL_WORKER, STILL_SCHEDULER],
        False,
    ),
    "a frozen child is none to a new scheduler": (
        "m main",
        0,
        3,
        "refused",
        FAILED,
        [STILL_CHILD, SCHEDULER],
        True,
    ),
    "but others are": ("n main", 0, 3, "refused", FAILED, [STILL_CHILD, SCHEDULER], False),
    "a short freeze is no absence": ("m main", 0, 3, "refused", AWAY, [STILL_SCHEDULER], False),
    "a long one is": ("m main", 0, 9, "refused", AWAY, [DEAD_SCHEDULER], True),
    "a worker past its grace has lost what it had": (
        "m main",
        0,
        9,
        "refused",
        FAILED,
        [DEAD_WORKER],
        True,
    ),
    "other ports have not": ("m side", 0, 9, "refused", FAILED, [DEAD_WORKER], False),
    "who loses messages seems away": ("m main", 0, 9, "refused", AWAY, [LOSS], True),
    "who delays them does not": ("m main", 0, 9, "refused", AWAY, [DELAY], False),
    "a greeting that is lost comes too late": (
        "m main",
        0,
        9,
        "refused",
        FAILED,
        [LOSS, SCHEDULER],
        True,
    ),
    "one that is late does not": ("m main", 0, 9, "refused", FAILED, [DELAY, SCHEDULER], False),
    "a stolen port fails nobody": ("m main", 0, 3, "refused", LOAD, [THEFT], False),
    "a full disk fails nobody": ("m main", 0, 3, "refused", LOAD, [FULL], False),
    "an odd code is not explained": ("m main", 0, 3, "refused", "internal_error", ALL, False),
    "a job is forgotten by nobody": ("m main", 0, 3, "refused", "job_not_found", [FULL], False),
    "but with what could not be written": (
        "m main",
        0,
        3,
        "refused",
        "job_not_found",
        [FULL, SCHEDULER],
        True,
    ),
    "nobody is stuck": ("m main", 0, 3, "stuck", "", ALL, False),
    "no answer is wrong": ("m main", 0, 3, "wrong", "", ALL, False),
}


@pytest.mark.parametrize("story", MAY)
def test_a_fault_allows_what_it_must_and_no_more(story: str) -> None:
    names, began, over, ending, code, faults, may = MAY[story]
    model, listener = names.split()
    ended = Ended(
        asking=Asking(at_s=began, listener=listener, model=model, streams=True, words=1),
        ending=Ending(ending),
        code=code,
        began_s=began,
        ended_s=over,
    )

    assert is_allowed(ended, faults, []) is may


@pytest.mark.parametrize("timeout", [50, None])
def test_who_has_a_time_limit_may_be_told_that_it_is_over(timeout: int | None) -> None:
    asking = Asking(at_s=0, listener="main", model="m", streams=True, words=1, timeout_ms=timeout)
    ended = Ended(asking=asking, ending=Ending.REFUSED, code="wait_timeout", began_s=0, ended_s=1)

    assert is_allowed(ended, [], []) is (timeout is not None)


@pytest.mark.parametrize(("lasts_s", "may"), [(9.5, True), (8.5, False)])
def test_only_what_a_worker_past_its_grace_had_begun_may_end_with_its_model(
    lasts_s: float, may: bool
) -> None:
    asking = Asking(at_s=0, listener="main", model="m", streams=True, words=1)
    ended = Ended(
        asking=asking, ending=Ending.REFUSED, code="model_unloaded", began_s=0, ended_s=12
    )
    frozen = done(Kind.FREEZE, Part.WORKER, "main", lasts_s=lasts_s)

    assert is_allowed(ended, [frozen, LOSS, DELAY, DEAD_SCHEDULER], []) is may


@pytest.mark.parametrize(
    ("port", "lasts_s", "may"), [("main", 6.0, True), ("main", 4.0, False), ("side", 6.0, False)]
)
def test_a_worker_that_is_frozen_when_a_scheduler_begins_may_greet_too_late(
    port: str, lasts_s: float, may: bool
) -> None:
    asking = Asking(at_s=0, listener=port, model="m", streams=True, words=1)
    ended = Ended(asking=asking, ending=Ending.REFUSED, code=FAILED, began_s=0, ended_s=9)
    frozen = done(Kind.FREEZE, Part.WORKER, "main", at_s=1.0, lasts_s=lasts_s)

    assert is_allowed(ended, [frozen, SCHEDULER], []) is may
