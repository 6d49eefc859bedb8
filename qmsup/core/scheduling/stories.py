"""What became of a request or a model, in sentences, told from the turns that were recorded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from qmsup.core.scheduling import wording
from qmsup.core.scheduling.effects import (
    Cut,
    Effect,
    Grant,
    LineMoved,
    Record,
    Refuse,
    TellLoading,
)
from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    ListenerJoined,
    Outcome,
    RequestAbandoned,
    RequestArrived,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.ids import EventNumber, LeaseId, ModelId, RequestId
from qmsup.units import Seconds

_SENTENCES = {
    "swap.over_budget": "{model} is loaded all the same, though nothing more may stop for it: {because}",
    "swap.done": "{model} is ready, {because} after that was decided",
    "swap.failed": "{model} could not be loaded: {because}",
    "swap.aborted": "loading {model} was given up while {because}",
    "model.crashed": "{model} died by itself: {because}",
    "model.unused": "{model} is unloaded: nobody has used it for {because}",
    "model.shed": "{model} is unloaded, since others want the GPU's memory and nobody uses it: {because}",
    "model.measured": "{model} was measured to take {because} of the GPU",
    "model.adopted": "{model} goes on from before the scheduler started ({because})",
    "model.pinned": "{model} was pinned",
    "model.unpinned": "{model} was unpinned",
    "job.held": "a job began to use {model}: {because}",
    "job.ended": "a job that used {model} ended: {because}",
    "job.kept": "a job goes on using {model} from before the scheduler started: {because}",
    "unload.asked": "somebody asked to unload {model} ({because})",
    "config.applied": "a new configuration is in force, and {model} is not in it",
    "model.unlawful": "{model} is unloaded: nobody uses it, and it may not run beside what else does ({because})",
    "lease.adopted": "{request} goes on using {model}",
    "lease.lapsed": "{request} was granted {model}, and its listener did not take that up in time",
    "lease.revived": "{request} uses {model} all the same: its listener took up the grant late",
    "line.closes": "who waits for {model} is {because}: what has to stop takes nothing new till then",
}
"""Decisions that are told in one way."""
_SAID_AGAIN = frozenset({"arrived", "place"})
"""First words of what listeners ask for, and are told, now and then anew: that is no news."""


class Turn(NamedTuple):
    """One event and what came of it: a call of `Scheduler.handle`, recorded."""

    number: EventNumber
    now: Seconds
    event: Event
    effects: Sequence[Effect]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Something that happened in a turn.

    Attributes:
        number, now: of the turn.
    """

    number: EventNumber
    now: Seconds
    text: str


def model_of(request: RequestId, turns: Iterable[Turn]) -> ModelId | None:
    """The model that a request is about, as far as these turns tell."""
    for turn in turns:
        event = turn.event
        if isinstance(event, UseLasted) and event.request == request:
            return event.model
        arrivals = event.waiting if isinstance(event, ListenerJoined) else (event,)
        for arrival in arrivals:
            if isinstance(arrival, RequestArrived) and arrival.request == request:
                return arrival.model
        for effect in turn.effects:
            if isinstance(effect, Grant) and effect.request == request:
                return effect.model
    return None


def of_request(
    request: RequestId, model: ModelId | None, turns: Iterable[Turn]
) -> tuple[Sentence, ...]:
    """The story of a request.

    Args:
        request: whose story it is.
        model: what it wants; loads of that are part of the story.
        turns: in order, from its arrival on, those that name it or decide about loads of its model; others do no harm.
    """
    told: list[Sentence] = []
    last: dict[str, str] = {}
    for turn in turns:
        for text in _told_of_request(request, model, turn):
            kind = text.partition(" ")[0]
            if kind in _SAID_AGAIN and last.get(kind) == text:
                continue
            last[kind] = text
            told.append(Sentence(number=turn.number, now=turn.now, text=text))
    return tuple(told)


def of_model(model: ModelId, turns: Iterable[Turn]) -> tuple[Sentence, ...]:
    """What was decided about a model."""
    return tuple(
        Sentence(number=turn.number, now=turn.now, text=_decision(effect, model))
        for turn in turns
        for effect in turn.effects
        if isinstance(effect, Record) and is_about(effect, model)
    )


def is_about(record: Record, model: ModelId) -> bool:
    """Whether a decision is about a model: to load it, to stop it, or about somebody who asked for it."""
    return record.model == model or model in record.evicts


def _told_of_request(request: RequestId, model: ModelId | None, turn: Turn) -> Iterator[str]:
    if text := _heard(request, turn.event):
        yield text
    for effect in turn.effects:
        match effect:
            case Record() if effect.request == request or _is_load_of(effect, model):
                yield _decision(effect, model)
            case Grant() | Refuse() | Cut() if effect.request == request:
                yield _answered(effect)
            case TellLoading(requests=requests) if request in requests:
                yield "left the line: its model is being loaded for it"
            case LineMoved(places=places):
                for whose, place in places:
                    if whose == request:
                        yield f"place {place} in the line"
            case _:
                pass


def _is_load_of(record: Record, model: ModelId | None) -> bool:
    return model is not None and record.model == model and record.decision.startswith("swap.")


def _heard(request: RequestId, event: Event) -> str:
    """What an event says about a request; "" when it is about others."""
    text = ""
    match event:
        case RequestArrived() if event.request == request:
            text = f"arrived for {event.model}, from {event.listener}"
        case ListenerJoined() if any(waiting.request == request for waiting in event.waiting):
            text = f"told of again by {event.listener}, which greeted"
        case ListenerJoined() if any(lease.request == request for lease in event.leases):
            text = f"in use already, said {event.listener}, which greeted"
        case UseLasted() if event.request == request:
            text = f"in use for {event.model} under a lease that {event.listener} had been lent"
        case RequestAbandoned() if event.request == request:
            text = "its client went away"
        case GrantAccepted() if event.request == request:
            text = "its listener took up the grant"
        case GrantDeclined() if event.request == request:
            text = "its listener declined the grant: the client had gone"
        case LeaseReleased() if event.lease == LeaseId(request):
            text = _ended(event.outcome, was_served=event.served)
        case LeaseReleased(lease=lease, uses=uses):
            # One at most: a request is served once.
            text = "".join(
                f"served under the lease that its listener had been lent for {lease}, and"
                f" {_ended(use.outcome, was_served=use.served)}"
                for use in uses
                if use.request == request
            )
        case _:
            pass
    return text


def _ended(outcome: Outcome, *, was_served: bool) -> str:
    return f"ended: {outcome}" + ("" if was_served else ", without any answer")


def _answered(effect: Grant | Refuse | Cut) -> str:
    match effect:
        case Grant():
            paid = (
                "was ready when it came" if effect.was_ready else "had to be loaded or waited for"
            )
            return (
                f"granted after {wording.span(effect.waited)}, at {effect.upstream}:"
                f" {effect.model} {paid}"
            )
        case Refuse(refusal=refusal):
            return f"refused, {refusal.code}: {refusal.message}"
        case Cut(refusal=refusal):
            return f"cut, {refusal.code}: {refusal.message}"
        case _:
            assert_never(effect)


def _decision(record: Record, model: ModelId | None) -> str:
    """A decision in a sentence. `model` is whose story it is told in."""
    if record.decision == "swap.started":
        return _started(record, model)
    if record.decision == "request.waits":
        who = "a load" if record.request is None else record.request
        return f"{who} waits: {wording.reason(record.because)} ({record.because})"
    if sentence := _SENTENCES.get(record.decision):
        return sentence.format(
            model=record.model or model,
            request=record.request,
            because=record.because,
        )
    told = [record.decision]
    told += [name for name in (record.model, record.request) if name is not None]
    told += [f"stops {wording.listed(record.evicts)}"] if record.evicts else []
    told += [record.because] if record.because else []
    return ", ".join(told)


def _started(record: Record, model: ModelId | None) -> str:
    load = f"loading {record.model}"
    load += "" if record.request is None else f" for {record.request}"
    if not record.evicts:
        return f"{load} began; {wording.choice(record.because)}"
    why = wording.choice(record.because)
    if model in record.evicts:
        return f"{model} is stopped: {load} began, and {why} ({record.because})"
    return f"{load} began; {wording.listed(record.evicts)} stopped for it: {why} ({record.because})"
