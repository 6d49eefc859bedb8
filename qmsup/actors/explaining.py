"""What `queue` and `explain` say: the state and the journal in sentences, as bodies of answers (wire: PROTOCOL.md)."""

import time
from collections.abc import Iterable, Mapping
from itertools import islice

from qmsup.actors.answers import BadQuestionError
from qmsup.actors.journal import Dated, Journal
from qmsup.actors.journal_lines import Header
from qmsup.core.scheduling import explanation, stories, views
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.events import RequestArrived
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stories import Turn
from qmsup.core.scheduling.unknown import unknown_model
from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import Epoch, EventNumber, ModelId, RequestId
from qmsup.units import Seconds

_DECISIONS = 20
"""Turns of a model's past that are told."""
_A_DECISION = b'"Record"'
_A_LOAD = b'"swap.'
_NEW_LIFE = "the scheduler was started anew: what it was loading then is begun again, what was ready goes on"
"""What stands in the line of a turn that decided something; about a load."""

_MOST_TURNS = 200
"""Turns of a request's past that are looked at; a request that is asked for again and again has many."""


def queue(state: State, now: Seconds) -> dict[str, object]:
    """The line, and who waits for loads."""
    return {
        "queue": [_place(state, place) for place in views.line(state, now)],
        "loading": [
            {"model": swap.target, "waiting": len(swap.joiners)} for swap in state.swaps.values()
        ],
    }


def explain(
    args: Mapping[str, object], state: State, journal: Journal, now: Seconds
) -> dict[str, object]:
    """Why a model or a request is where it is.

    Raises:
        BadQuestionError: neither is named, or both.
        RequestError: there is no such model, or nothing is known of the request.
    """
    match args:
        case {"model": str(name), **rest} if name and "request" not in rest:
            return _of_model(_known_model(name, state), state, journal, now)
        case {"request": str(request), **rest} if request and "model" not in rest:
            return _of_request(RequestId(request), state, journal, now)
        case _:
            raise BadQuestionError('explain: name a "model" or a "request"')


def _known_model(name: str, state: State) -> ModelId:
    found = state.spec.model_named(name)
    model = ModelId(name) if found is None else found.id
    if model not in state.models:
        raise RequestError(unknown_model(state, model))
    return model


def _of_model(model: ModelId, state: State, journal: Journal, now: Seconds) -> dict[str, object]:
    standing = explanation.of_model(state, model, now)
    recorded = journal.naming(model, saying=_A_DECISION)
    turns = [*islice((d for d in recorded if _decides(d.turn, model)), _DECISIONS)][::-1]
    return {
        "model": model,
        "request": None,
        "now": standing.about,
        "evicts": standing.evicts,
        "reasons": standing.reasons,
        "obstacles": standing.obstacles,
        "waiting": [_place(state, place) for place in standing.places],
        "loading": standing.joined,
        "story": _told((dated, stories.of_model(model, (dated.turn,))) for dated in turns),
    }


def _of_request(
    request: RequestId, state: State, journal: Journal, now: Seconds
) -> dict[str, object]:
    turns = [*islice(journal.naming(request), _MOST_TURNS)][::-1]
    standing = explanation.of_waiter(state, request, now)
    model = stories.model_of(request, (dated.turn for dated in turns))
    if model is not None:
        turns = _with_loads(turns, model, journal, is_over=request not in state.waiters)
    story = _told((dated, stories.of_request(request, model, (dated.turn,))) for dated in turns)
    if not story and not standing:
        raise RequestError(_unknown_request(request, journal))
    return {
        "model": model,
        "request": request,
        "now": standing,
        "evicts": (),
        "reasons": (),
        "obstacles": (),
        "waiting": (),
        "loading": (),
        "story": story,
    }


def _with_loads(
    turns: list[Dated], model: ModelId, journal: Journal, *, is_over: bool
) -> list[Dated]:
    """The request's turns, and those between them that decided about loads of its model."""
    by_key = {_key(dated): dated for dated in turns}
    first, last = _key(turns[0]), _key(turns[-1])
    for dated in journal.naming(model, saying=_A_LOAD):
        if _key(dated) < first:
            break
        if _key(dated) < last or not is_over:
            by_key.setdefault(_key(dated), dated)
    return [by_key[key] for key in sorted(by_key)]


def _key(dated: Dated) -> tuple[Epoch, EventNumber]:
    return dated.life.epoch, dated.turn.number


def _decides(turn: Turn, model: ModelId) -> bool:
    return any(isinstance(e, Record) and stories.is_about(e, model) for e in turn.effects)


def _told(turns: Iterable[tuple[Dated, tuple[stories.Sentence, ...]]]) -> list[dict[str, object]]:
    told: list[dict[str, object]] = []
    life: Header | None = None
    for dated, sentences in turns:
        for sentence in sentences:
            if life is not None and life.epoch != dated.life.epoch:
                told.append(_line(dated.life, EventNumber(0), dated.life.started, _NEW_LIFE))
            life = dated.life
            told.append(_line(life, sentence.number, dated.time, sentence.text))
    return told


def _line(life: Header, turn: EventNumber, at: float, text: str) -> dict[str, object]:
    return {"time": round(at, 3), "epoch": life.epoch, "turn": turn, "text": text}


def _unknown_request(request: RequestId, journal: Journal) -> Refusal:
    oldest = journal.begins()
    back = "nothing yet" if oldest is None else time.strftime("%F %T", time.localtime(oldest.time))
    return Refusal(
        code=Code.NOT_FOUND,
        message=f"nothing is known of request {str(request)!r}: the journal goes back to {back}."
        " Requests are named by X-QM-Request-Id",
    )


def _place(state: State, place: views.PlaceView) -> dict[str, object]:
    waiter = None if place.request is None else state.waiters.get(place.request)
    listener = None
    if waiter is not None and isinstance(waiter.origin, RequestArrived):
        listener = state.listeners[waiter.origin.listener].name
    return {
        "position": place.place,
        "request": place.request,
        "model": place.model,
        "listener": listener,
        "waited_s": round(place.waited, 3),
        "patience_left_s": round(place.patience_left, 3),
        "because": place.because,
    }
