"""The control questions that want something done: what each one's arguments mean, as an event for the scheduler."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qmsup.actors import answers
from qmsup.actors.answers import BadQuestionError
from qmsup.actors.gateway import Asked
from qmsup.core.scheduling.events import (
    DrainAsked,
    LeaseRenewed,
    LeaseRequested,
    LoadAsked,
    PinAsked,
    ReleaseAsked,
    UnloadAsked,
)
from qmsup.core.scheduling.state import State
from qmsup.ids import AskId, LeaseId
from qmsup.spec import Spec
from qmsup.units import Seconds

VERBS = "load, unload, lease, renew, release, pin, unpin, drain, undrain"
EVERY_VERB = (
    "ping, status, ps, running, leases, queue, explain, hosts, journal, metrics, activity, reload, subscribe,"
    f" shutdown, {VERBS}"
)
_LONGEST_NAME = 200
_LONGEST_TTL = Seconds(30 * 24 * 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Something to be done.

    Attributes:
        body: what its answer tells beside the scheduler's words.
    """

    event: (
        LoadAsked
        | UnloadAsked
        | LeaseRequested
        | LeaseRenewed
        | ReleaseAsked
        | PinAsked
        | DrainAsked
    )
    body: Mapping[str, object] = field(default_factory=dict)


def wish_of(asked: Asked, state: State, spec: Spec, now: Seconds) -> Wish | None:
    """What a question wants done; None = nothing, it only wants to know something.

    Raises:
        BadQuestionError: an argument has the wrong shape.
    """
    ask, args = asked.ask, asked.args
    match asked.verb:
        case "load":
            model = answers.model_of("load", args, spec)
            return Wish(event=LoadAsked(ask=ask, model=model), body={"model": model})
        case "unload":
            models, drain = answers.models_of(args, spec)
            stopping = answers.with_child(state, spec, now, models)
            event = UnloadAsked(ask=ask, models=models, drain=drain)
            return Wish(event=event, body={"stopped": stopping})
        case "lease" | "renew" | "release":
            return _of_job(asked, spec)
        case "pin" | "unpin" as verb:
            model = answers.model_of(verb, args, spec)
            pin = PinAsked(ask=ask, model=model, is_pinned=verb == "pin")
            return Wish(event=pin, body={"model": model})
        case "drain" | "undrain" as verb:
            return Wish(event=DrainAsked(ask=ask, is_draining=verb == "drain"))
        case _:
            return None


def preload(spec: Spec, tell: Callable[[LoadAsked], None]) -> None:
    """Have loaded what the configuration wants at the start: as if somebody had asked, who needs no answer."""
    for model in spec.preload:
        tell(LoadAsked(ask=AskId(f"preload {model}"), model=model))


def _of_job(asked: Asked, spec: Spec) -> Wish:
    ask, verb, args = asked.ask, asked.verb, asked.args
    if verb == "lease":
        # Who chooses the id can ask a new scheduler again, and gets no second lease.
        lease = _lease(verb, {"lease": f"job-{secrets.token_hex(6)}", **args})
        model = answers.model_of(verb, args, spec)
        requested = LeaseRequested(
            ask=ask,
            lease=lease,
            model=model,
            owner=_text(verb, args, "owner"),
            purpose=_text(verb, args, "purpose"),
            ttl=_ttl(verb, args),
        )
        return Wish(event=requested, body={"lease": lease, "model": model})
    lease = _lease(verb, args)
    if verb == "renew":
        renewed = LeaseRenewed(ask=ask, lease=lease, ttl=_ttl(verb, args))
        return Wish(event=renewed, body={"lease": lease})
    return Wish(event=ReleaseAsked(ask=ask, lease=lease), body={"lease": lease})


def _lease(verb: str, args: Mapping[str, object]) -> LeaseId:
    lease = _text(verb, args, "lease")
    if not lease:
        raise BadQuestionError(f'{verb}: "lease" must be the id of a lease')
    return LeaseId(lease)


def _text(verb: str, args: Mapping[str, object], key: str) -> str:
    text = args.get(key, "")
    if not isinstance(text, str) or len(text) > _LONGEST_NAME:
        raise BadQuestionError(f'{verb}: "{key}" must be text of at most {_LONGEST_NAME} letters')
    return text


def _ttl(verb: str, args: Mapping[str, object]) -> Seconds:
    match args.get("ttl_s"):
        case bool():
            pass
        case int() | float() as ttl if 0 < ttl <= _LONGEST_TTL:
            return Seconds(float(ttl))
        case _:
            pass
    raise BadQuestionError(
        f'{verb}: "ttl_s" must be seconds, more than 0 and at most {_LONGEST_TTL:.0f}'
    )
