"""The words in which decisions are told to people. What has no words yet is told by its name."""

from collections.abc import Iterable

from qmsup.units import Seconds

_REASONS = {
    "at_limit": "all places of the model are in use",
    "aborting": "a load of the model that nobody wanted any more is being given up",
    "closing": "the model takes no new requests until it has stopped",
    "collides": "another load under way meets what this one would load or stop",
    "busy": "a model that would have to stop has requests in flight",
    "held": "a model that would have to stop is held for a client that is likely to come back",
    "recovering": "the scheduler has just begun, and what is in flight is not known yet",
    "looking": "the GPU had no room for it a moment ago, and is read anew",
    "rendering": "a render is under way, and nothing may be loaded beside it",
    "yields": "somebody who has waited too long comes first",
    "reserved": "what it would load or stop is kept for somebody who has waited too long",
    "silent": "its listener has not been heard for a while",
}

_CHOICES = {
    "budget": "the coldest models go until it fits the budget",
    "groups": "its group does not run beside them",
    "matrix": "no combination of the matrix holds them together at less cost",
    "pools": "the coldest models go until it fits its pool's budget",
    "fits": "nothing has to stop for it",
    "over_budget": "nothing may stop for it, and beside what runs it is over the budget",
}


def reason(because: str) -> str:
    """Why a waiter waits."""
    return _REASONS.get(because, because)


def choice(because: str) -> str:
    """Why these models stop for a load, or none: by which policy, or how it stands."""
    return _CHOICES.get(because, f"policy {because}")


def listed(names: Iterable[str], most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    every = [*names]
    told = ", ".join(every[:most])
    return told if len(every) <= most else f"{told} and {len(every) - most} more"


def counted(number: int, what: str) -> str:
    """`1 request`, `2 requests`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def waiting(number: int) -> str:
    """`1 request waits`, `2 requests wait`."""
    return f"{counted(number, 'request')} {'waits' if number == 1 else 'wait'}"


def span(seconds: Seconds) -> str:
    """`0.812 s`, `75.3 s`, `12 min`."""
    if seconds < 10:  # noqa: PLR2004 - from here on nobody counts milliseconds
        return f"{seconds:.3f} s"
    return f"{seconds:.1f} s" if seconds < 600 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - ten minutes
