import random

import pytest

from scripts.soaking.clients import Asking, Ended, Ending
from scripts.soaking.faults import Fault, Part, Taken, is_allowed, plan

MODELS, LISTENERS = ["m", "n"], ["main", "side"]


def throw(seed: int, *parts: Part) -> object:
    return plan(random.Random(seed), MODELS, LISTENERS, set(parts or Part))


def test_the_same_dice_throw_the_same_round() -> None:
    assert throw(1) == throw(1)
    assert throw(1) != throw(2)


def test_in_calm_rounds_only_children_are_killed() -> None:
    rounds = [plan(random.Random(seed), MODELS, LISTENERS, {Part.CHILD}) for seed in range(30)]

    assert {fault.part for thrown in rounds for fault in thrown.faults} == {Part.CHILD}
    assert {fault.name for thrown in rounds for fault in thrown.faults} == {"m", "n"}


def killed(part: Part, name: str, at_s: float) -> Taken:
    return Taken(fault=Fault(at_s=at_s, part=part, name=name), at_s=at_s, pid=1)


CHILD = killed(Part.CHILD, "m", 2.0)
WORKER = killed(Part.WORKER, "main", 2.0)
SCHEDULER = killed(Part.SCHEDULER, "", 2.0)

# Model, listener, from, to, ending, code; what was killed; whether it may.
MAY = {
    "an answer always may": ("m main", 0, 3, "answered", "", [CHILD], True),
    "who left always may": ("m main", 0, 3, "left", "", [], True),
    "no error without a fault": ("m main", 0, 3, "refused", "upstream_failed", [], False),
    "a dead child fails its own": ("m main", 0, 3, "refused", "upstream_failed", [CHILD], True),
    "a dead child fails no other": ("n main", 0, 3, "refused", "upstream_failed", [CHILD], False),
    "a dead child cuts nobody": ("m main", 0, 3, "cut", "", [CHILD], False),
    "not yet dead it fails nobody": ("m main", 0, 1, "refused", "upstream_failed", [CHILD], False),
    "a load is not tried at once": ("m main", 9, 9, "refused", "model_load_failed", [CHILD], True),
    "but it is later": ("m main", 40, 41, "refused", "model_load_failed", [CHILD], False),
    "a dead worker cuts its own": ("m main", 0, 3, "cut", "", [WORKER], True),
    "a dead worker cuts no other port": ("m side", 0, 3, "cut", "", [WORKER], False),
    "a dead worker cuts nobody later": ("m main", 3, 4, "cut", "", [WORKER], False),
    "a dead worker is no error": ("m main", 0, 3, "refused", "upstream_failed", [WORKER], False),
    "children outlive a scheduler": (
        "n side",
        0,
        3,
        "refused",
        "upstream_failed",
        [SCHEDULER],
        False,
    ),
    "its absence is felt": (
        "n side",
        0,
        3,
        "refused",
        "scheduler_unavailable",
        [SCHEDULER],
        True,
    ),
    "a dead scheduler cuts nobody": ("n side", 0, 3, "cut", "", [SCHEDULER], False),
    "an odd code is not explained": ("m main", 0, 3, "refused", "internal_error", [CHILD], False),
    "nobody is stuck": ("m main", 0, 3, "stuck", "", [CHILD, WORKER, SCHEDULER], False),
    "no answer is wrong": ("m main", 0, 3, "wrong", "", [CHILD, WORKER, SCHEDULER], False),
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
