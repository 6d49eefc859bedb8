"""Asking two models in turn that do not fit together: each request pays for a swap."""

import http.client
import json
import math
import time
from collections.abc import Sequence

from scripts.benchmark.course import Course, Tallies
from scripts.benchmark.figures import Who, median
from scripts.benchmark.peers import Peer
from scripts.benchmark.programs import ask
from scripts.benchmark.targets import Row, Target, row

_SWAPS = 12
_PATIENCE_S = 15.0


def measure(course: Course, compared: Sequence[Peer]) -> list[Row]:
    """The time to the answer of a 1-token completion that needs the other model."""
    tallies = Tallies()
    swappers = [peer for peer in compared if peer.who in (Who.ROUTER, Who.QMSUP)]
    for _ in course.each_round("swaps"):
        for peer in swappers:
            times_ms = _swap_to_and_fro(course, peer)
            tallies["swap"].add(peer.who, median(times_ms))
            tallies["worst"].add(peer.who, max(times_ms, default=math.nan))
    return [
        row(
            "swap A-B-A: time to the answer, p50",
            "ms",
            tallies["swap"],
            Target(bound=1.0, against=Who.ROUTER),
        ),
        row("swap A-B-A: the longest of a round", "ms", tallies["worst"]),
    ]


def _swap_to_and_fro(course: Course, peer: Peer) -> list[float]:
    times_ms = []
    for number in range(course.many(_SWAPS) + 1):
        model = "tiny-b" if number % 2 else "tiny-a"
        began = time.monotonic()
        problem = _complete(peer.port, model)
        took_ms = (time.monotonic() - began) * 1000
        if problem:
            course.troubles.append(f"swap to {model}, {peer.who}: {problem} after {took_ms:.0f} ms")
        elif number:  # the first finds out, uncounted, which model was there
            times_ms.append(took_ms)
    return times_ms


def _complete(port: int, model: str) -> str:
    """What went wrong, or nothing."""
    body = json.dumps({"model": model, "prompt": "hello", "max_tokens": 1}).encode()
    try:
        status, text = ask(port, "POST", "/v1/completions", body, timeout_s=_PATIENCE_S)
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    if status != 200:
        return f"status {status}: {text.decode(errors='replace')[:200]}"
    return ""
