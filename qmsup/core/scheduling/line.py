"""The line: who waits, in which order, and at which place.

Waiters that cannot differ in what becomes of them (the same model, wanted in the same way) form a group, so that
one judgement does for all of them. Over the groups there is one order: whoever is past its patience first, by
arrival; then higher priority, then arrival.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from qmsup.core.scheduling.deadlines import Alarm
from qmsup.core.scheduling.events import LeaseRequested, LoadAsked, RequestArrived
from qmsup.core.scheduling.messages import Word
from qmsup.ids import ModelId, RequestId
from qmsup.units import Seconds


class Because(Word):
    """Why a waiter waits."""

    AT_LIMIT = "at_limit"
    """As many requests as the model takes at once are in flight."""
    ABORTING = "aborting"
    """A load of this model that nobody wanted any more is being given up."""
    CLOSING = "closing"
    """The model takes no new requests: it stops when the last one ends."""
    COLLIDES = "collides"
    """A swap under way meets what this one would load or stop."""
    BUSY = "busy"
    """A model that would have to stop has requests in flight."""
    HELD = "held"
    """A model that would have to stop is kept for a conversation that is likely to come back."""
    YIELDS = "yields"
    """The model takes no new requests until somebody is served who has waited long enough."""
    RESERVED = "reserved"
    """What would be loaded or stopped is needed by somebody who has waited long enough."""
    LOOKING = "looking"
    """By the last reading it finds no room on the GPU, and that is not of this moment: it is being read anew."""
    RECOVERING = "recovering"
    """What is in flight since before the scheduler's start is not known yet, so nothing is loaded or stopped."""
    RENDERING = "rendering"
    """An image or a video is being made, which takes more memory at its peak than it seems."""
    SILENT = "silent"
    """The listener that asked has not been heard for a while, so nothing is granted to it."""


class Wants(Word):
    """What a waiter is after."""

    JOB = "job"
    """A lease on top of the model's limit: the request that began the job may still be in flight."""
    LEASE = "lease"
    NOTHING = "nothing"
    """Its listener is silent: it keeps its place and is passed over."""
    TRACKED = "tracked"
    """A lease on top of the model's limit, of a request that is only counted."""
    READY = "ready"
    """The model has to be ready, with room or not: no lease is taken."""


class Case(NamedTuple):
    """What the judge looks at. Waiters of one case get one verdict."""

    model: ModelId
    wants: Wants
    is_past: bool = False
    """Its patience is over: it honours no hold, and goes before those whose patience is not."""


Order = tuple[int, int]
"""Of a class of waiters: whoever is past its patience, and then each priority. Lower goes first."""


class Rank(NamedTuple):
    """The place of arrival: earlier first, and no two alike."""

    arrived: Seconds
    number: int


@dataclass(slots=True, eq=False)
class Waiter:
    """A request, a job, or a control client's load, that has no answer yet.

    Attributes:
        origin: what was asked.
        rank: when it came; it keeps that through every load that did not serve it.
        impatient: the end of its patience, when its case becomes a past one.
        was_ready: the model was ready when it came.
        joined: the swap it waits for; None = it stands in the line.
        place: what its listener was last told.
        alarm: when it wants to wait no more at all (`timeout`).
        turn: while its patience lasts, the alarm for its end.
        is_streaming: the client can be told its place.
    """

    origin: RequestArrived | LoadAsked | LeaseRequested
    case: Case
    rank: Rank
    impatient: Seconds = Seconds(float("inf"))
    was_ready: bool = False
    joined: ModelId | None = None
    place: int = 0
    alarm: Alarm | None = None
    turn: Alarm | None = None
    is_streaming: bool = field(init=False)

    def __post_init__(self) -> None:
        """A control client is told nothing until it is answered."""
        self.is_streaming = isinstance(self.origin, RequestArrived) and self.origin.streaming

    @property
    def wants(self) -> Wants:
        """What a request is after while its listener is heard."""
        origin = self.origin
        is_tracked = isinstance(origin, RequestArrived) and origin.is_tracked
        return Wants.TRACKED if is_tracked else Wants.LEASE

    @property
    def request(self) -> RequestId | None:
        """None = it is a control client's."""
        return self.origin.request if isinstance(self.origin, RequestArrived) else None


@dataclass(slots=True, eq=False)
class Group:
    """The waiters of one case, earliest first.

    Attributes:
        evict: what would have to stop for it when it was last judged, where that decided anything.
        order: lower goes first; among equals, arrival decides.
        turn: when its first waiter is looked at.
    """

    case: Case
    priority: int = 0
    waiters: list[Waiter] = field(default_factory=list)
    evict: tuple[ModelId, ...] | None = None
    order: Order = field(init=False)
    turn: tuple[int, int, Seconds, int] = field(init=False)

    def prefer(self, priority: int) -> None:
        """Its model has this priority; it decides nothing for who is past its patience."""
        self.priority = priority
        self.order = (0, 0) if self.case.is_past else (1, -priority)

    def stand(self) -> None:
        """Somebody else is its first waiter, or its order is another."""
        self.turn = (*self.order, *self.waiters[0].rank)


by_arrival: Callable[[Waiter], Rank] = attrgetter("rank")
"""For sorting: hundreds are, when a load ends that they waited for."""


class Line:
    """All waiting requests of all models, in one order.

    Attributes:
        groups: by case; none is empty.
        past: how many are past their patience.
        has_held: since everybody was last looked at, somebody was found to wait for a hold.
        has_moved: somebody's place has changed since the places were last told.
    """

    __slots__ = (
        "_by_model",
        "_counts",
        "_latest",
        "_priority",
        "groups",
        "has_held",
        "has_moved",
        "past",
        "size",
        "streaming",
    )

    def __init__(self, priority: Mapping[ModelId, int]) -> None:
        self.groups: dict[Case, Group] = {}
        self.size = 0
        self.streaming = 0
        self.past = 0
        self.has_held = False
        self.has_moved = False
        self._priority = priority
        self._latest = Rank(Seconds(float("-inf")), 0)
        self._by_model: dict[ModelId, list[Group]] = {}
        self._counts: Counter[Order] = Counter()

    def add(self, waiter: Waiter) -> Group:
        """Put a waiter at its place of arrival."""
        case = waiter.case
        group = self._group(case)
        waiters, rank = group.waiters, waiter.rank
        if not waiters or rank > waiters[-1].rank:
            waiters.append(waiter)
        else:
            insort(waiters, waiter, key=by_arrival)
        if waiters[0] is waiter:
            group.stand()
        if rank > self._latest:
            self._latest = rank
            # Where there is one class of waiters, nobody stands behind the latest arrival.
            self.has_moved |= bool(self._priority) or case.is_past
        else:
            self.has_moved = True
        self._counts[group.order] += 1
        self.size += 1
        self.past += case.is_past
        self.streaming += waiter.is_streaming
        return group

    def put_back(self, waiters: Iterable[Waiter]) -> None:
        """Have those who were taken out, in order of arrival, wait where they stood."""
        by_case: dict[Case, list[Waiter]] = {}
        case, back = None, []
        for waiter in waiters:
            if waiter.case != case:  # seldom: they waited for one model
                case = waiter.case
                back = by_case.setdefault(case, [])
            back.append(waiter)
        for case, back in by_case.items():
            self.streaming += sum([waiter.is_streaming for waiter in back])
            group = self._group(case)
            is_alone = not group.waiters
            group.waiters += back
            if not is_alone:
                group.waiters.sort(key=by_arrival)
            group.stand()
            self._counts[group.order] += len(back)
            self.size += len(back)
            self.past += len(back) if case.is_past else 0
            self.has_moved = True

    def remove(self, waiter: Waiter) -> None:
        """Take a waiter out; those behind it move up."""
        group = self.groups[waiter.case]
        waiters = group.waiters
        if waiters[0] is not waiter:
            del waiters[bisect_left(waiters, waiter.rank, key=by_arrival)]
        else:
            del waiters[0]
            if waiters:
                group.stand()
            else:
                self._drop(group)
        self.has_moved = True
        self._counts[group.order] -= 1
        self.size -= 1
        self.past -= waiter.case.is_past
        self.streaming -= waiter.is_streaming

    def take(self, model: ModelId) -> list[Waiter]:
        """Take out whoever waits for a model and is heard, in order of arrival."""
        groups = [g for g in self.of_model(model) if g.case.wants is not Wants.NOTHING]
        taken = [waiter for group in groups for waiter in group.waiters]
        for group in groups:
            self._counts[group.order] -= len(group.waiters)
            self.past -= len(group.waiters) if group.case.is_past else 0
            self._drop(group)
            group.waiters.clear()
        if len(groups) > 1:
            taken.sort(key=by_arrival)
        self.has_moved |= bool(taken)
        self.size -= len(taken)
        self.streaming -= sum([waiter.is_streaming for waiter in taken])
        return taken

    def is_latest(self, waiter: Waiter) -> bool:
        """Whether nobody has come later."""
        return waiter.rank == self._latest

    def is_first(self, waiter: Waiter) -> bool:
        """Whether it goes before all of its like."""
        return self.groups[waiter.case].waiters[0] is waiter

    def place_of(self, waiter: Waiter) -> int:
        """1 = next. Cheap for the latest arrival, a look at each group for any other."""
        own = self.groups[waiter.case].order
        if self.is_latest(waiter):
            return sum(count for order, count in self._counts.items() if order <= own)
        place = 1
        for group in self.groups.values():
            if group.order < own:
                place += len(group.waiters)
            elif group.order == own:
                place += bisect_left(group.waiters, waiter.rank, key=by_arrival)
        return place

    def of_model(self, model: ModelId) -> Sequence[Group]:
        """The groups that wait for one model."""
        return self._by_model.get(model, ())

    def count(self, model: ModelId) -> int:
        """How many wait for one model."""
        return sum(len(group.waiters) for group in self.of_model(model))

    def in_order(self) -> list[Waiter]:
        """Everybody, first to last. A walk over the whole line: not for every event."""
        classes: dict[tuple[int, int], list[Waiter]] = {}
        for group in self.groups.values():
            classes.setdefault(group.order, []).extend(group.waiters)
        line: list[Waiter] = []
        for order in sorted(classes):
            line += sorted(classes[order], key=by_arrival)
        return line

    def reorder(self, priority: Mapping[ModelId, int]) -> None:
        """Other priorities are in force."""
        self._priority = priority
        self._counts.clear()
        for group in self.groups.values():
            group.prefer(priority.get(group.case.model, 0))
            group.stand()
            self._counts[group.order] += len(group.waiters)
        self.has_moved = True

    def _group(self, case: Case) -> Group:
        group = self.groups.get(case)
        if group is None:
            group = self.groups[case] = Group(case)
            group.prefer(self._priority.get(case.model, 0))
            self._by_model.setdefault(case.model, []).append(group)
        return group

    def _drop(self, group: Group) -> None:
        """Nobody of this case waits any more."""
        model = group.case.model
        del self.groups[group.case]
        self._by_model[model].remove(group)
        if not self._by_model[model]:
            del self._by_model[model]
