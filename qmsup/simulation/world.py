"""A box in virtual time: the real scheduler's core, and stand-ins for clients, listeners and child processes."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import assert_never

from qmsup.core.scheduling.effects import (
    AbortStart,
    ArmWake,
    Cut,
    Effect,
    EnsureReady,
    Grant,
    Record,
    Refuse,
    Stop,
    TellLoading,
)
from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    LeaseReleased,
    ListenerJoined,
    Outcome,
    ProcessFailed,
    RequestAbandoned,
    RequestArrived,
    Woke,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.ids import LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.simulation.agenda import Agenda
from qmsup.simulation.books import Books, End, Request
from qmsup.simulation.children import Children, Pace
from qmsup.simulation.traces import Arrivals, Ask, Item, Loop, Trace
from qmsup.spec import Spec
from qmsup.units import Seconds

_WORKER = WorkerId("simulated")

OnRecord = Callable[[Seconds, Record], None]


@dataclass(frozen=True, slots=True)
class _Live:
    """A request that has not ended.

    Attributes:
        item, round: whose it is, and the how manyeth of it, from 0.
    """

    book: Request
    ask: Ask
    outcome: Outcome
    item: Item
    round: int


def simulate(
    trace: Trace, spec: Spec, pace: Pace | None = None, on_record: OnRecord | None = None
) -> Books:
    """Run a trace to its end.

    Args:
        trace: who asks for what.
        spec: the configuration.
        pace: how long children take.
        on_record: hears each decision with its time.

    Returns:
        What was counted. The same arguments always give the same.
    """
    return _World(spec, pace or Pace(), on_record).run(trace)


class _World:
    def __init__(self, spec: Spec, pace: Pace, on_record: OnRecord | None) -> None:
        self._spec = spec
        self._scheduler = Scheduler(spec)
        self._agenda = Agenda()
        self._children = Children(pace, self._agenda, self._tell)
        self._books = Books()
        self._on_record = on_record
        self._live: dict[RequestId, _Live] = {}
        self._to_come = 0
        self._untold: deque[Event] = deque()
        self._is_telling = False
        self._swapping: set[ModelId] = set()

    def run(self, trace: Trace) -> Books:
        self._tell(ListenerJoined(listener=_WORKER, name=ListenerName("simulated"), pid=1))
        for item in trace:
            self._to_come += 1
            self._agenda.at(item.at, partial(self._arrives, item, 0))
        self._agenda.run(partial(self._tell, Woke()), self._is_over)
        self._books.close(self._agenda.now)
        return self._books

    def _is_over(self) -> bool:
        return not self._to_come and not self._live

    # ---- the scheduler

    def _tell(self, event: Event) -> None:
        """Hand over an event; one that an effect gives rise to comes after all effects of the first."""
        self._untold.append(event)
        if self._is_telling:
            return
        self._is_telling = True
        while self._untold:
            event = self._untold.popleft()
            if isinstance(event, ProcessFailed):
                self._books.load_failed(event.model)
            for effect in self._scheduler.handle(event, self._agenda.now):
                self._carry_out(effect)
            self._note_swaps()
        self._is_telling = False

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case ArmWake(at=at):
                self._agenda.wake = at
            case Grant() | Refuse() | Cut():
                self._tell_client(effect)
            case TellLoading(requests=requests):
                for request in requests:
                    self._promoted(request)
            case EnsureReady(model=model, incarnation=incarnation):
                self._books.load(model)
                self._children.bring_up(model, incarnation)
            case Stop(incarnation=incarnation):
                self._children.stop(incarnation)
            case AbortStart(model=model, incarnation=incarnation):
                self._books.load_aborted(model)
                self._children.stop(incarnation)
            case Record():
                # What is about no model is about the stand-in for a listener.
                if self._on_record is not None and effect.model is not None:
                    self._on_record(self._agenda.now, effect)
            case _:
                pass  # places in the line and answers to control clients: nobody listens here

    def _tell_client(self, effect: Grant | Refuse | Cut) -> None:
        match effect:
            case Grant(request=request):
                self._granted(request)
            case Refuse(request=request, refusal=refusal):
                self._ends(request, End.REFUSED, refusal.code)
            case Cut(request=request, refusal=refusal):
                self._ends(request, End.CUT, refusal.code)

    def _note_swaps(self) -> None:
        swaps = self._scheduler.state.swaps
        if swaps.keys() != self._swapping:
            self._swapping = set(swaps)
            self._books.swaps(self._swapping, self._agenda.now)

    # ---- clients and their listener

    def _arrives(self, item: Item, nth: int) -> None:
        now = self._agenda.now
        ask = item.ask
        outcome = ask.outcome
        match item:
            case Arrivals(times=times, every=every):
                if nth + 1 < times:
                    at = item.at + (nth + 1) * every
                    self._agenda.at(at, partial(self._arrives, item, nth + 1))
                else:
                    self._to_come -= 1
                name = item.name if times == 1 else f"{item.name}#{nth + 1}"
            case Loop(rounds=rounds):
                self._to_come -= 1
                if nth + 1 == rounds:
                    outcome = item.last
                name = f"{item.name}/{nth + 1}"
            case _:
                assert_never(item)
        self._asks(_Live(self._entry(RequestId(name), ask, now), ask, outcome, item, nth))

    def _entry(self, request: RequestId, ask: Ask, now: Seconds) -> Request:
        found = self._spec.model_named(ask.model)
        model = ask.model if found is None else found.id
        patience = self._spec.scheduler.patience if ask.patience is None else ask.patience
        return Request(id=request, model=model, patience=patience, arrived=now)

    def _asks(self, live: _Live) -> None:
        ask, book = live.ask, live.book
        assert book.id not in self._live, f"{book.id} is under way already"
        self._live[book.id] = live
        self._books.arrive(book, book.arrived)
        if ask.abandon_after is not None:
            self._agenda.after(ask.abandon_after, partial(self._leaves, live))
        self._tell(
            RequestArrived(
                request=book.id,
                listener=_WORKER,
                model=book.model,
                hold=ask.hold,
                patience=ask.patience,
                timeout=ask.timeout,
                conversation=ask.conversation,
            )
        )

    def _promoted(self, request: RequestId) -> None:
        live = self._live.get(request)
        if live is not None and live.book.promoted is None:
            live.book.promoted = self._agenda.now

    def _granted(self, request: RequestId) -> None:
        live = self._live.get(request)
        if live is None or live.book.granted is not None:
            return
        self._books.grant(live.book, self._agenda.now)
        self._agenda.after(live.ask.duration, partial(self._answered, live))
        self._tell(GrantAccepted(request=request))

    def _answered(self, live: _Live) -> None:
        if live.book.end is None:
            self._ends(live.book.id, End.SERVED, live.outcome)
            self._release(live, live.outcome)

    def _leaves(self, live: _Live) -> None:
        book = live.book
        if book.end is not None:
            return
        was_granted = book.granted is not None
        self._ends(book.id, End.LEFT, "while answered" if was_granted else "while waiting")
        if was_granted:
            self._release(live, Outcome.ABANDONED)
        else:
            self._tell(RequestAbandoned(request=book.id))

    def _release(self, live: _Live, outcome: Outcome) -> None:
        self._tell(LeaseReleased(lease=LeaseId(live.book.id), outcome=outcome))

    def _ends(self, request: RequestId, end: End, detail: str) -> None:
        live = self._live.pop(request, None)
        if live is None:
            return
        self._books.end(live.book, end, detail, self._agenda.now)
        item = live.item
        if not isinstance(item, Loop):
            return
        left = item.rounds - live.round - 1
        if end is not End.SERVED:
            self._books.unasked += left
        elif left:
            self._to_come += 1
            self._agenda.after(item.gap, partial(self._arrives, item, live.round + 1))
