"""The telemetry actor: what is read of the memory becomes news for the scheduler, and a reading to be shown.

It samples often while a child loads, ends or gives back memory, seldom otherwise, and hardly ever while nothing runs
and nobody looks. Whether a sample is news `core.vram` decides; the reading itself is done in a thread of its own.
"""

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import assert_never

import pykka
from typing_extensions import override

from qmsup.actors import mishaps
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.actors.sampling import Sampled, Sampler, SampleReader
from qmsup.actors.sightings import Kept, LookedAt, MemorySeen, ReadNow, Watched, WatchOnly
from qmsup.core.scheduling.events import Event
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.vram import cadence, ceiling
from qmsup.core.vram.attribution import Resident, Stage
from qmsup.core.vram.gauge import Gauge
from qmsup.core.vram.reading import Back, Changed, ChildRam, Limits, Look, News, Peak, Reading
from qmsup.ids import Incarnation
from qmsup.log import Log
from qmsup.processes.families import Families
from qmsup.units import MiB, Seconds

_HANGS_AFTER = Seconds(5.0)
_WALK_EVERY = Seconds(60.0)
_WALK_OFTEN = Seconds(1.0)
_RAM_JITTER = 16
"""A peak of RAM that is higher by less than one of so many parts is not worth telling."""
_BYTES_PER_MIB = 1024 * 1024

_log = Log("telemetry")


class TelemetryActor(pykka.ThreadingActor):
    """Tell it WatchOnly, LookedAt and ReadNow."""

    def __init__(
        self,
        *,
        open_reader: Callable[[], SampleReader],
        report: Callable[[Event | MemorySeen], None],
        kept: Kept,
    ) -> None:
        """Made by the scheduler actor.

        Args:
            open_reader: makes what reads; called in a thread of its own.
            report: takes the news; must not wait.
            kept: by one that broke, for the next.
        """
        super().__init__()
        assert isinstance(self.actor_inbox, PollingInbox), "made below"
        self._inbox = self.actor_inbox
        self._report = report
        self._sampler = Sampler(open_reader, self._sampled)
        self._kept = kept
        self._gauge = Gauge(kept.floor)
        self._families = Families()
        self._children: dict[Incarnation, Watched] = {}
        self._ended: dict[Incarnation, Watched] = {}
        self._limits = Limits()
        self._warned_of: MiB | None = None
        self._rams: dict[Incarnation, MiB] = {}
        self._shown = Reading()
        self._asked_at: Seconds | None = None
        self._is_wanted = self._is_awaited = False
        self._is_hanging = False
        self._has_cards = True  # until a look says that there are none
        self._took = Seconds(0.0)
        self._last_at = Seconds(float("-inf"))
        self._looked_at = Seconds(float("-inf"))
        self._changed_at = Seconds(float("-inf"))
        self._walked_at = Seconds(float("-inf"))

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_start(self) -> None:
        self._plan()

    @override
    def on_stop(self) -> None:
        self._sampler.close()
        self._inbox.close()

    @override
    def on_receive(self, message: object) -> None:
        match message:
            case Sampled():
                self._take(message)
            case WatchOnly():
                self._watch(message)
            case LookedAt():
                self._looked_at = _now()
            case ReadNow():
                self._is_wanted = True
            case TimeIsUp():
                self._look_at_the_clock()
            case _:
                super().on_receive(message)
        self._plan()

    @override
    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Our own fault. Nobody must go on believing in the last reading, and whoever hears of it makes another.
        _log.exception("telemetry.broke")
        mishaps.note("telemetry", "all of it", exception_value)
        self._kept.has_broken = True
        self._sampler.close()
        self._inbox.close()
        self._report(CeilingChanged())
        because = "the telemetry broke, and is started anew: see the log"
        self._report(MemorySeen(reading=Reading(because=because)))

    def _sampled(self, sampled: Sampled) -> None:
        """In the sampler's thread."""
        try:
            self.actor_ref.tell(sampled)
        except pykka.ActorDeadError:
            return  # it was ended meanwhile

    def _watch(self, told: WatchOnly) -> None:
        now = _now()
        children = {child.incarnation: child for child in told.children}
        for incarnation, child in self._children.items():
            if incarnation not in children:
                self._gauge.ended(incarnation, self._limits, now)
                self._ended[incarnation] = child
                self._rams.pop(incarnation, None)
        if children != self._children:
            self._changed_at = now
        self._children = children
        self._families.keep_only([c.pid for c in children.values() if c.pid is not None])
        if told.limits != self._limits:
            self._limits = told.limits
            self._tell(self._gauge.limit(told.limits))

    def _look_at_the_clock(self) -> None:
        now = _now()
        if self._asked_at is not None:
            if now - self._asked_at >= _HANGS_AFTER and not self._is_hanging:
                self._is_hanging = True
                _log.error("telemetry.hangs", after_s=_HANGS_AFTER)
                self._go_blind(f"a driver has not answered for {_HANGS_AFTER:g} s")
            return
        if self._walk_is_due(now):
            self._walked_at = now
            self._families.look_around()
        self._asked_at = now
        # One that is under way already may have been read before it was wanted.
        self._is_awaited, self._is_wanted = self._is_wanted, False
        self._sampler.ask(self._families.pids())

    def _take(self, sampled: Sampled) -> None:
        self._learn(sampled)
        if self._is_awaited:
            self._is_awaited = False
            self._report(MemoryRead())

    def _learn(self, sampled: Sampled) -> None:
        now = _now()
        assert self._asked_at is not None, "nothing is sampled that was not asked for"
        self._took, self._last_at, self._asked_at = Seconds(now - self._asked_at), now, None
        if self._is_hanging:
            self._is_hanging = False
            _log.info("telemetry.answers_again", took_s=round(self._took, 1))
        if sampled.sample is None:
            self._go_blind(sampled.trouble)
            return
        self._has_cards = bool(sampled.sample.cards)
        leaders = {child.pid: number for number, child in self._children.items() if child.pid}
        owners = {use.pid: self._families.owner_of(use.pid) for use in sampled.sample.uses}
        look = Look(
            sample=sampled.sample,
            residents=self._residents(),
            owners={pid: leaders[leader] for pid, leader in owners.items() if leader in leaders},
            ram=dict(self._ram()),
        )
        self._tell(self._gauge.take(look, self._limits, now))
        self._kept.floor = self._gauge.floor
        self._tell_of_ram(look)
        if not self._gauge.is_settling:
            self._ended.clear()

    def _go_blind(self, trouble: str) -> None:
        look = Look(trouble=trouble, residents=self._residents(), ram=dict(self._ram()))
        self._tell(self._gauge.take(look, self._limits, _now()))

    def _residents(self) -> tuple[Resident, ...]:
        return tuple(
            Resident(
                incarnation=number,
                stage=child.stage,
                is_on_gpu=child.is_on_gpu,
                size=child.size,
            )
            for number, child in self._children.items()
        )

    def _ram(self) -> Iterator[tuple[Incarnation, ChildRam]]:
        for number, child in self._children.items():
            use = None if child.pid is None else self._families.use_of(child.pid)
            if use is not None:
                resident, private = use.resident // _BYTES_PER_MIB, use.private // _BYTES_PER_MIB
                yield number, ChildRam(resident=MiB(resident), private=MiB(private))

    def _tell(self, news: list[News]) -> None:
        for each in news:
            event = self._event_of(each)
            if event is not None:
                self._report(event)
        if self._gauge.reading != self._shown:
            self._warn_of_budget(self._gauge.reading)
            self._shown = self._gauge.reading
            self._report(MemorySeen(reading=self._shown))

    def _warn_of_budget(self, reading: Reading) -> None:
        """Once for each budget: it may be taken for a promise that the cards cannot keep."""
        budget = self._limits.budget
        if budget == self._warned_of or reading.total is None or reading.floor is None:
            return
        self._warned_of = budget
        beyond = ceiling.promised_beyond(budget, total=reading.total, floor=reading.floor)
        if beyond:
            _log.warning(
                "vram.budget_too_large",
                budget_mib=budget,
                gpus_mib=reading.total,
                used_by_others_mib=reading.floor,
                hint="what fits the budget may not fit the GPUs, and is refused then:"
                f" lower vramBudgetGB by {beyond / 1024:.1f}",
            )

    def _event_of(self, news: News) -> Event | None:
        match news:
            case Changed(reading=reading):
                return ceiling_of(reading)
            case Back(incarnation=incarnation):
                child = self._ended.get(incarnation)
                return None if child is None else _returned(child, news)
            case Peak(incarnation=incarnation, held=held):
                return self._measured(incarnation, held)
            case _:
                assert_never(news)

    def _measured(self, incarnation: Incarnation, held: MiB) -> Event:
        child = self._children[incarnation]
        return FootprintMeasured(
            model=child.model,
            argv=child.argv,
            incarnation=incarnation,
            peak=held,
            ram=self._rams.get(incarnation, MiB(0)),
        )

    def _tell_of_ram(self, look: Look) -> None:
        """Also of children that no card has anything of; not of each step of a load."""
        for incarnation, used in look.ram.items():
            known = self._rams.get(incarnation, MiB(0))
            is_loading = self._children[incarnation].stage is Stage.STARTING
            if not is_loading and used.resident > known + known // _RAM_JITTER:
                self._rams[incarnation] = used.resident
                self._report(self._measured(incarnation, MiB(0)))

    def _walk_is_due(self, now: Seconds) -> bool:
        """Whatever a wrapper starts is there by the time that the child gets ready, as a rule."""
        if not self._children:
            return False
        is_starting = any(child.stage is Stage.STARTING for child in self._children.values())
        every = _WALK_OFTEN if is_starting else _WALK_EVERY
        return self._walked_at < self._changed_at or now - self._walked_at >= every

    def _plan(self) -> None:
        """Wake up for the next sample, or when the one under way has taken too long."""
        if self._asked_at is not None:
            at = None if self._is_hanging else Seconds(self._asked_at + _HANGS_AFTER)
        else:
            now = _now()
            interval = cadence.interval(
                (child.stage for child in self._children.values()),
                is_settling=self._gauge.is_settling,
                decides=self._has_cards or self._limits.ram_budget is not None,
                since_change=Seconds(now - self._changed_at),
                since_shown=Seconds(now - self._looked_at),
                took=self._took,
            )
            at = now if self._is_wanted else Seconds(max(now, self._last_at + interval))
        self._inbox.wake_at(at)


def _returned(child: Watched, news: Back) -> MemoryReturned:
    return MemoryReturned(
        model=child.model,
        incarnation=news.incarnation,
        returned=news.returned,
        free=news.free,
        held=news.held,
    )


def ceiling_of(reading: Reading) -> CeilingChanged:
    """A reading as the scheduler is told of it."""
    if not reading.is_trusted:
        return CeilingChanged(ram_ceiling=reading.ram_ceiling)
    return CeilingChanged(
        ceiling=reading.ceiling,
        free=reading.free,
        held=reading.held,
        shed_line=reading.shed_line,
        ram_ceiling=reading.ram_ceiling,
    )


def _now() -> Seconds:
    return Seconds(time.monotonic())
