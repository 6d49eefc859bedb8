"""From samples to news: what a sample means, and whether it differs enough from what was told before.

Whoever samples calls `take` with each sample, and passes on what comes back. Nothing is told twice, and no jitter is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from qmsup.core.vram.attribution import Attribution, Resident, Stage, Trust, attribute
from qmsup.core.vram.ceiling import budget_of, live_ceiling, ram_ceiling, shed_line
from qmsup.core.vram.floor import Floor, steadied
from qmsup.core.vram.leaving import Leaving
from qmsup.core.vram.reading import (
    NOTHING_YET,
    Back,
    Changed,
    Limits,
    Look,
    News,
    Peak,
    Reading,
)
from qmsup.ids import Incarnation
from qmsup.units import MiB, Seconds

JITTER = MiB(32)
"""A smaller difference is not worth a turn of the scheduler. What adds up to more is told."""
RAM_JITTER = MiB(256)
"""The machine's memory is never still."""
_OPEN_AT_MOST = Seconds(5.0)
"""A child that uses the GPU at all is seen within a second or two; after this the sample is as good as none."""

_COMING_BACK = "memory of models that ended while this could not be read is on its way back"


class Gauge:
    """What is remembered from sample to sample."""

    def __init__(self, floor: Floor | None = None) -> None:
        """Nothing is known yet, but the floor if a former gauge learnt it: a game that runs now would look like one."""
        self.floor = Floor() if floor is None else floor
        self._leaving = Leaving()
        self._foreign: dict[frozenset[str], MiB] = {}
        self._last = Attribution(trust=Trust.NONE, because=NOTHING_YET)
        self._look = Look()
        self._held_before: Mapping[Incarnation, MiB] = {}
        self._seen: dict[Incarnation, MiB] = {}
        self._most: dict[Incarnation, MiB] = {}
        self._peaks: dict[Incarnation, MiB] = {}
        self._open_since: Seconds | None = None
        self._told = Reading()
        self.reading = Reading()
        """The newest."""

    @property
    def is_settling(self) -> bool:
        """Whether memory of children that have gone is on its way back."""
        return bool(self._leaving)

    def ended(self, incarnation: Incarnation, limits: Limits, now: Seconds) -> None:
        """A child's end was heard of: what it held comes back."""
        self._peaks.pop(incarnation, None)
        held = self._seen.pop(incarnation, MiB(0))
        most = self._most.pop(incarnation, MiB(0))
        self._leaving.ended(incarnation, held, Seconds(now + limits.settle), most)

    def take(self, look: Look, limits: Limits, now: Seconds) -> list[News]:
        """Take one look in.

        Args:
            look: what is seen.
            limits: in force.
            now: the monotonic clock.
        """
        known = [replace(r, was_seen=r.incarnation in self._seen) for r in look.residents]
        attribution = (
            Attribution(trust=Trust.NONE, because=look.trouble)
            if look.sample is None
            else attribute(look.sample, known, look.owners)
        )
        self._leaving.forget_overdue(now)
        self._look_for_vanished(known, attribution)
        if not attribution.contradicts:
            self._seen.update(attribution.held)
        is_blind = not self._told.is_trusted
        news: list[News] = [*self._peaks_of(known, attribution)]
        back = [*self._back(known, attribution)]
        if not is_blind:
            news += back
        elif attribution.trust is Trust.GOOD and self._leaving.is_owed:
            # Who decides knows nothing of what they held, and would take it for somebody else's.
            attribution = replace(attribution, trust=Trust.NONE, because=_COMING_BACK)
        if not self._is_patient(attribution, now):
            self._last, self._look = attribution, look
            self.reading = self._meaning(limits)
            news += self._change()
        return news

    def limit(self, limits: Limits) -> list[News]:
        """Other limits are in force: the newest sample means something else."""
        if self._open_since is not None:
            return []  # the next one that counts is read by them
        self.reading = self._meaning(limits)
        return [*self._change()]

    def _is_patient(self, attribution: Attribution, now: Seconds) -> bool:
        """Whether the sample before counts for a little longer."""
        if attribution.trust is not Trust.OPEN:
            self._open_since = None
            return False
        if self._open_since is None:
            self._open_since = now
        return now - self._open_since < _OPEN_AT_MOST

    def _look_for_vanished(self, residents: Iterable[Resident], attribution: Attribution) -> None:
        if attribution.used is None:
            return
        for each in residents:
            number = each.incarnation
            if each.stage is Stage.STARTING:
                self._most[number] = each.size
            if number in attribution.held:
                self._leaving.seen(number)
                if each.stage is Stage.READY:
                    self._most.pop(number, None)
            elif each.stage is Stage.STOPPING and each.was_seen:
                most = self._most.get(number, MiB(0))
                self._leaving.vanished(number, self._seen[number], most)

    def _back(self, residents: Iterable[Resident], attribution: Attribution) -> Iterator[Back]:
        """What has come back of the dead; with it goes what others use, learnt from what can be trusted alone."""
        if attribution.trust is Trust.NONE or attribution.contradicts:
            return
        free, cards = attribution.free, attribution.cards
        assert free is not None, "only a sample whose use is known is good for anything"
        before = self._foreign.get(cards)
        foreign = self._leaving.foreign_of(attribution.others, before)
        moved = self._moved(attribution.held, residents)
        if attribution.trust is Trust.GOOD:
            if before is not None and moved >= JITTER:
                foreign = steadied(foreign, before, moved)
            elif cards not in self.floor.lowest:
                self.floor = self.floor.after(cards, foreign, attribution.others_of)
            elif before is not None and not self._leaving:
                # A child that dies between two reads makes others' use look low, once: the floor wants it twice. While
                # memory is on its way back it would have that: what others use is then as little as it was before.
                self.floor = self.floor.after(cards, MiB(max(foreign, before)))
            self._foreign[cards] = foreign
        for incarnation, returned in self._leaving.take_news():
            self._told = replace(self._told, free=free)
            held = attribution.held
            yield Back(incarnation=incarnation, returned=returned, free=free, held=held)

    def _moved(self, held: Mapping[Incarnation, MiB], residents: Iterable[Resident]) -> MiB:
        """By how much our children's use differs from the look before, and may do so from one read to the next."""
        before, self._held_before = self._held_before, held
        children = before.keys() | held.keys()
        changed = sum(abs(held.get(child, 0) - before.get(child, 0)) for child in children)
        ending = [each.incarnation for each in residents if each.stage is Stage.STOPPING]
        return MiB(changed + sum(held.get(child, 0) for child in ending))

    def _meaning(self, limits: Limits) -> Reading:
        """What the newest look that counts means."""
        last = self._last
        shown = replace(
            _with_ram(self._look, limits),
            because=last.because,
            total=last.total if last.cards else None,
            used=last.used,
            free=last.free,
            shares=tuple(replace(share, ours=None) for share in last.shares),
        )
        if last.trust is not Trust.GOOD:
            return shown
        foreign, floor = self._foreign[last.cards], self.floor.lowest[last.cards]
        budget = budget_of(limits.budget, last.total)
        return replace(
            shown,
            foreign=foreign,
            floor=floor,
            ceiling=live_ceiling(budget, foreign=foreign, floor=floor, reserve=limits.reserve),
            shed_line=shed_line(budget, foreign=foreign, floor=floor),
            held=self._held(last),
            shares=last.shares,
        )

    def _held(self, last: Attribution) -> dict[Incarnation, MiB]:
        """Also what has not come back of those that are being stopped: a load may count on it."""
        vanished = {i: left for i in self._seen if (left := self._leaving.left_of(i))}
        return {**vanished, **last.held}

    def _peaks_of(self, residents: Iterable[Resident], attribution: Attribution) -> Iterator[Peak]:
        """Of those that are ready: while one loads, each sample would be a peak."""
        if attribution.contradicts:
            return
        for each in residents:
            held = attribution.held.get(each.incarnation, MiB(0))
            if each.stage is Stage.READY and held > self._peaks.get(each.incarnation, 0):
                self._peaks[each.incarnation] = held
                yield Peak(incarnation=each.incarnation, held=held)

    def _change(self) -> Iterator[Changed]:
        if _differ(self._told, self.reading):
            self._told = self.reading
            yield Changed(reading=self.reading)


def _with_ram(look: Look, limits: Limits) -> Reading:
    ram = None if look.sample is None else look.sample.ram
    if ram is None:
        return Reading(ram=look.ram)
    ceiling = ram_ceiling(ram, [each.private for each in look.ram.values()])
    return Reading(
        ram_total=ram.total,
        ram_available=ram.available,
        ram_ceiling=MiB(min(limits.ram_budget, ceiling)) if limits.ram_budget else None,
        ram=look.ram,
    )


def _differ(told: Reading, reading: Reading) -> bool:
    """Whether who decides would want to know."""
    if _is_far(told.ram_ceiling, reading.ram_ceiling, RAM_JITTER):
        return True
    if not (told.is_trusted or reading.is_trusted):
        return False
    return (
        told.is_trusted != reading.is_trusted
        or _is_far(told.ceiling, reading.ceiling)
        or _is_far(told.free, reading.free)
        or _is_far(told.shed_line, reading.shed_line)
        or told.held.keys() != reading.held.keys()
        or any(_is_far(size, told.held[child]) for child, size in reading.held.items())
    )


def _is_far(one: MiB | None, other: MiB | None, jitter: MiB = JITTER) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) >= jitter
