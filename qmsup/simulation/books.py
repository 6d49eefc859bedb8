"""What is written down while a trace runs: each request's times and end, and how long things were so."""

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds


class End(StrEnum):
    """How a request ended; each ends in exactly one of these."""

    SERVED = "served"
    REFUSED = "refused"
    LEFT = "left"
    """Its client went away, while it waited or while it was answered."""
    CUT = "cut"
    """Its model was stopped under it."""
    UNANSWERED = "unanswered"
    """Nothing was left that could have served it: a fault of the scheduler's."""


@dataclass(slots=True, eq=False)
class Request:
    """One request.

    Attributes:
        patience: how long it respects holds; past it, it may be called starved.
        promoted: when its model's load began for it, or before it was told so.
        detail: the outcome of a served one, the code of a refused or cut one.
    """

    id: RequestId
    model: ModelId
    patience: Seconds
    arrived: Seconds
    promoted: Seconds | None = None
    granted: Seconds | None = None
    ended: Seconds | None = None
    end: End | None = None
    detail: str = ""

    @property
    def waited(self) -> Seconds:
        """From its arrival to its grant, or to its end without one."""
        return self._since_arrival(self.granted)

    @property
    def in_line(self) -> Seconds:
        """The part of it before its model's load began."""
        return self._since_arrival(self.granted if self.promoted is None else self.promoted)

    def _since_arrival(self, until: Seconds | None) -> Seconds:
        until = self.ended if until is None else until
        return Seconds(0.0 if until is None else until - self.arrived)


class Meter:
    """Adds up how long something was so."""

    __slots__ = ("_since", "total")

    def __init__(self) -> None:
        self.total = Seconds(0.0)
        self._since: Seconds | None = None

    def set(self, *, is_so: bool, now: Seconds) -> None:
        """From now on it is so, or not."""
        if is_so:
            if self._since is None:
                self._since = now
        elif self._since is not None:
            self.total = Seconds(self.total + now - self._since)
            self._since = None


@dataclass(slots=True, eq=False)
class Usage:
    """What is counted of one model, or of all together.

    Attributes:
        waiting, in_flight: requests now.
        is_swapping: room is being made for it, or it is loading.
        busy: while a request was answered.
        lost: while a swap was under way and somebody waited.
        loads: starts that were ordered; of these `failed` failed, `aborted` were given up.
    """

    waiting: int = 0
    in_flight: int = 0
    is_swapping: bool = False
    busy: Meter = field(default_factory=Meter)
    lost: Meter = field(default_factory=Meter)
    loads: int = 0
    failed: int = 0
    aborted: int = 0

    def settle(self, now: Seconds) -> None:
        """Something changed: set the meters."""
        self.busy.set(is_so=self.in_flight > 0, now=now)
        self.lost.set(is_so=self.is_swapping and self.waiting > 0, now=now)


class Books:
    """Everything that was counted in one run.

    Attributes:
        unasked: rounds that no agent came to, since its loop ended before.
        ended: when the last request ended.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.unasked = 0
        self.ended = Seconds(0.0)
        self.all = Usage()
        self.models: defaultdict[ModelId, Usage] = defaultdict(Usage)
        self._swapping: set[ModelId] = set()

    @property
    def is_settled(self) -> bool:
        """Nobody waits and nobody is being answered."""
        return not self.all.waiting and not self.all.in_flight

    def arrive(self, request: Request, now: Seconds) -> None:
        """A request came."""
        self.requests.append(request)
        self._count(request, now, waiting=1)

    def grant(self, request: Request, now: Seconds) -> None:
        """It is being answered."""
        request.granted = now
        self._count(request, now, waiting=-1, in_flight=1)

    def end(self, request: Request, end: End, detail: str, now: Seconds) -> None:
        """It ended. It must not have done so before."""
        assert request.end is None, f"{request.id} ended as {request.end}, and now as {end}"
        request.end, request.detail, request.ended = end, detail, now
        self.ended = now
        if request.granted is None:
            self._count(request, now, waiting=-1)
        else:
            self._count(request, now, in_flight=-1)

    def load(self, model: ModelId) -> None:
        """A start was ordered."""
        self.models[model].loads += 1
        self.all.loads += 1

    def load_failed(self, model: ModelId) -> None:
        """A start failed."""
        self.models[model].failed += 1
        self.all.failed += 1

    def load_aborted(self, model: ModelId) -> None:
        """A start was given up."""
        self.models[model].aborted += 1
        self.all.aborted += 1

    def swaps(self, targets: set[ModelId], now: Seconds) -> None:
        """These models are being loaded now, or room is being made for them."""
        for model in targets ^ self._swapping:
            usage = self.models[model]
            usage.is_swapping = model in targets
            usage.settle(now)
        self._swapping = targets
        self.all.is_swapping = bool(targets)
        self.all.settle(now)

    def close(self, now: Seconds) -> None:
        """The run is over: what still waits was never answered."""
        for request in self.requests:
            if request.end is None:
                self.end(request, End.UNANSWERED, "", now)
        self.swaps(set(), now)

    def _count(
        self, request: Request, now: Seconds, *, waiting: int = 0, in_flight: int = 0
    ) -> None:
        for usage in (self.models[request.model], self.all):
            usage.waiting += waiting
            usage.in_flight += in_flight
            usage.settle(now)
