"""What a run comes to, in figures: per model, and for all together."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qmsup.ids import ModelId
from qmsup.simulation.books import Books, End, Request, Usage
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long requests waited, from their arrival to their grant, or to their end without one."""

    mean: Seconds
    p50: Seconds
    p95: Seconds
    longest: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one model, or of all.

    Attributes:
        requests: of these each was served, refused, left by its client, cut, or never answered.
        served: by the outcome of the answer.
        refused, cut: by code.
        loads: starts; of these `failed_loads` failed and `aborted_loads` were given up.
        lost: while a swap was under way and somebody waited; for all, side by side swaps count once.
        starved: waited in line, before any load for them began, longer than their patience and the longest request.
        busy: the part of the whole time, 0 to 1, in which requests were answered.
    """

    requests: int
    served: Mapping[str, int]
    refused: Mapping[str, int]
    left: int
    cut: Mapping[str, int]
    unanswered: int
    loads: int
    failed_loads: int
    aborted_loads: int
    wait: Waits
    lost: Seconds
    starved: int
    busy: float

    @property
    def unserved(self) -> int:
        """Requests that got no whole answer though their clients stayed."""
        return sum(self.refused.values()) + sum(self.cut.values()) + self.unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Of one run.

    Attributes:
        span: from the first arrival to the last end.
        unasked: rounds that agents did not come to, since a refusal ended their loops.
        models: those that were asked for or loaded, by name.
    """

    span: Seconds
    unasked: int
    models: Mapping[ModelId, Figures]
    total: Figures


def report_of(books: Books) -> Report:
    """Add up what was written down."""
    requests = books.requests
    span = Seconds(books.ended - min((r.arrived for r in requests), default=books.ended))
    longest = Seconds(max((_service(r) for r in requests), default=0.0))
    of_model: dict[ModelId, list[Request]] = {model: [] for model in sorted(books.models)}
    for request in requests:
        of_model[request.model].append(request)
    models = {
        model: _figures(asked, books.models[model], span, longest)
        for model, asked in of_model.items()
        if asked or books.models[model].loads
    }
    return Report(
        span=span,
        unasked=books.unasked,
        models=models,
        total=_figures(requests, books.all, span, longest),
    )


def _figures(requests: Sequence[Request], usage: Usage, span: Seconds, longest: Seconds) -> Figures:
    ends = Counter(request.end for request in requests)
    return Figures(
        requests=len(requests),
        served=_details(requests, End.SERVED),
        refused=_details(requests, End.REFUSED),
        left=ends[End.LEFT],
        cut=_details(requests, End.CUT),
        unanswered=ends[End.UNANSWERED],
        loads=usage.loads,
        failed_loads=usage.failed,
        aborted_loads=usage.aborted,
        wait=_waits(request.waited for request in requests),
        lost=usage.lost.total,
        starved=sum(request.in_line > request.patience + longest for request in requests),
        busy=usage.busy.total / span if span > 0 else 0.0,
    )


def _details(requests: Iterable[Request], end: End) -> dict[str, int]:
    counts = Counter(request.detail for request in requests if request.end is end)
    return {str(detail): counts[detail] for detail in sorted(counts)}


def _service(request: Request) -> float:
    if request.granted is None or request.ended is None:
        return 0.0
    return request.ended - request.granted


def _waits(waits: Iterable[Seconds]) -> Waits:
    ordered = sorted(waits)
    return Waits(
        mean=Seconds(math.fsum(ordered) / len(ordered) if ordered else 0.0),
        p50=_percentile(ordered, 0.5),
        p95=_percentile(ordered, 0.95),
        longest=_percentile(ordered, 1.0),
    )


def _percentile(ordered: Sequence[Seconds], part: float) -> Seconds:
    """The least value that so large a part of all does not exceed: one that was really seen."""
    if not ordered:
        return Seconds(0.0)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]
