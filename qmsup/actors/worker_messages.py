"""What a worker says, as the core's events, and what the core tells workers, as messages. Nothing else knows both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from qmsup.actors.routed_messages import Routed, routed_at_host, routed_of
from qmsup.core.scheduling.effects import Cut, Grant, LineMoved, Recall, Refuse, TellLoading
from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    ListenerJoined,
    LiveLease,
    Outcome,
    RequestAbandoned,
    RequestArrived,
    Use,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.views import Tally
from qmsup.ids import Epoch, HostName, LeaseId, RequestId, WorkerId
from qmsup.spec import LOCAL
from qmsup.units import Seconds, ms_from_seconds, seconds_from_ms
from qmsup.wire import listening

_OUTCOMES: Mapping[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
_LONGEST_WAIT_MS = 366 * 24 * 3600 * 1000

ToWorker = Grant | Recall | Refuse | Cut | LineMoved | TellLoading
AfterHello = (
    listening.Ask
    | listening.Leave
    | listening.Accepted
    | listening.Declined
    | listening.Done
    | listening.Lasts
    | listening.Beat
)


@dataclass(frozen=True, slots=True)
class Greeted:
    """A worker said hello. Its process is to be watched before the event is handled.

    Attributes:
        held: its requests that are at hosts of routes, this box among them, and where.
        waiting: those that wait for one.
    """

    event: ListenerJoined
    held: tuple[tuple[Routed, HostName], ...] = ()
    waiting: tuple[Routed, ...] = ()


def greeted(worker: WorkerId, hello: listening.Hello) -> Greeted:
    """What a greeting says."""
    joined = ListenerJoined(
        listener=worker,
        name=hello.listener,
        pid=hello.pid,
        leases=tuple(_live(holding) for holding in hello.leases if holding.host == LOCAL),
        waiting=tuple(arrived(worker, w) for w in hello.waiting if w.routed is None),
        lends=hello.lends,
    )
    return Greeted(
        joined,
        held=tuple(
            (routed_at_host(worker, holding, way), HostName(holding.host))
            for holding in hello.leases
            if (way := holding.routed) is not None
        ),
        waiting=tuple(
            routed_of(arrived(worker, w), way)
            for w in hello.waiting
            if (way := w.routed) is not None
        ),
    )


def _live(holding: listening.Holding) -> LiveLease:
    return LiveLease(
        request=holding.request,
        model=holding.model,
        incarnation=holding.incarnation,
        hold=_seconds(holding.hold_ms),
        conversation=holding.conversation,
        client=holding.client,
        waited=_waited(holding.waited_ms),
    )


def arrived(worker: WorkerId, asked: listening.Ask | listening.Waiting) -> RequestArrived:
    """A request that wants a model, for the first time or again."""
    return RequestArrived(
        request=asked.request,
        listener=worker,
        model=asked.model,
        streaming=asked.streaming,
        hold=_seconds(asked.hold_ms),
        patience=_seconds(asked.patience_ms),
        timeout=_seconds(asked.timeout_ms),
        conversation=asked.conversation,
        client=asked.client,
        waited=_waited(asked.waited_ms),
    )


def _seconds(ms: int | None) -> Seconds | None:
    return None if ms is None else seconds_from_ms(ms)


def _waited(ms: int) -> Seconds:
    """What a peer says of the past: it is told again, in a message that takes no number whatsoever."""
    return seconds_from_ms(min(max(0, ms), _LONGEST_WAIT_MS))


def said(worker: WorkerId, message: AfterHello) -> Event | Tally:
    """What a worker that has greeted says: with a beat what it has, otherwise what happened."""
    match message:
        case listening.Ask():
            return arrived(worker, message)
        case listening.Accepted():
            return GrantAccepted(request=message.request)
        case listening.Done() | listening.Lasts():
            return _said_of_use(worker, message)
        case listening.Leave():
            return RequestAbandoned(request=message.request)
        case listening.Declined():
            return GrantDeclined(request=message.request)
        case listening.Beat(waiting=waiting, held=held):
            return Tally(waiting=waiting, held=held)
        case _:
            assert_never(message)


def _said_of_use(
    worker: WorkerId, message: listening.Done | listening.Lasts
) -> LeaseReleased | UseLasted:
    if isinstance(message, listening.Done):
        return LeaseReleased(
            lease=LeaseId(message.request),
            outcome=_OUTCOMES.get(message.outcome, Outcome.UNKNOWN),
            served=message.served,
            uses=tuple(map(_use_of, message.uses)) if message.uses else (),
        )
    return UseLasted(
        listener=worker,
        request=message.request,
        model=message.model,
        incarnation=message.incarnation,
        hold=_seconds(message.hold_ms),
        conversation=message.conversation,
        client=message.client,
    )


def _use_of(use: listening.Use) -> Use:
    return Use(
        request=use.request,
        outcome=_OUTCOMES.get(use.outcome, Outcome.UNKNOWN),
        served=use.served,
        hold=_seconds(use.hold_ms),
        conversation=use.conversation,
        client=use.client,
    )


def message_of(effect: ToWorker, epoch: Epoch) -> listening.FromScheduler:
    """What tells a worker of an effect in this life of the scheduler."""
    match effect:
        case Grant():
            return listening.Granted(
                request=effect.request,
                epoch=epoch,
                model=effect.model,
                incarnation=effect.incarnation,
                upstream=effect.upstream,
                was_ready=effect.was_ready,
                waited_ms=ms_from_seconds(effect.waited),
                lent_ms=ms_from_seconds(effect.lent) if effect.lent else 0,
            )
        case Recall():
            return listening.Recall()
        case Refuse(refusal=refusal):
            return listening.Refused(
                request=effect.request,
                code=refusal.code,
                message=refusal.message,
                retry_after_s=refusal.retry_after,
            )
        case Cut(refusal=refusal):
            return listening.CutOff(
                request=effect.request,
                code=refusal.code,
                message=refusal.message,
                had_lapsed=effect.had_lapsed,
            )
        case LineMoved():
            return listening.Moved(places=effect.places, was_ready=effect.was_ready)
        case TellLoading(requests=requests):
            return _promoted(requests)
        case _:
            assert_never(effect)


def _promoted(requests: tuple[RequestId, ...]) -> listening.Loading | listening.Moved:
    """That they left the line, in one message."""
    if len(requests) == 1:
        return listening.Loading(request=requests[0])
    return listening.Moved(places=tuple((request, 0) for request in requests))
