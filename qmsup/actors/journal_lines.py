"""The lines of a journal: a life's header, and the turns after it, as JSON. No secrets and no prompt text.

A header is an object, a turn an array: `[number, now, event, {…}, [[effect, {…}], …]]`. Encoding a turn takes about
two microseconds, so that the scheduler can do it for each of its turns; reading one takes its time.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import msgspec

from qmsup.actors import plain_values
from qmsup.core.scheduling import effects as all_effects
from qmsup.core.scheduling import events as all_events
from qmsup.core.scheduling.effects import ArmWake, Effect, LineMoved
from qmsup.core.scheduling.events import ConfigApplied, Event
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Epoch, EventNumber, Incarnation
from qmsup.spec import FilterSpec, ModelSpec, Spec
from qmsup.units import Seconds

_VERSION = 1

_VEILED = frozenset({"conversation", "client"})
"""Fields by which a person could be known again."""

_EVENTS = {kind.__name__: kind for kind in get_args(all_events.Event)}
_EFFECTS = {kind.__name__: kind for kind in get_args(all_effects.Effect)}
_NAMES = {kind: name for name, kind in (*_EVENTS.items(), *_EFFECTS.items())}
_SECRET = re.compile(rb'("(?:%b)":)"((?:[^"\\]|\\.)+)"' % "|".join(sorted(_VEILED)).encode())
"""Such a field, as it is encoded. No string has one in it, as its quotes would be escaped."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a life of the scheduler began with.

    Attributes:
        first_incarnation: the number of its first start of a child.
        spec: the configuration it began with, without its secrets.
        started: Unix seconds, at the moment `clock` of the monotonic clock: it tells the time of the turns.
    """

    epoch: Epoch
    first_incarnation: Incarnation
    spec: Spec
    started: float
    clock: Seconds


def is_kept(effect: Effect) -> bool:
    """Whether an effect is worth a place in the journal: wakes and many moved places at once are not."""
    if type(effect) is ArmWake:
        return False
    return type(effect) is not LineMoved or len(effect.places) == 1


class LineWriter:
    """Turns of one life as lines. Secrets become digests that tell equal from unequal within this life alone."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._digest = lru_cache(maxsize=1024)(self._digest_of)

    def header(self, header: Header) -> bytes:
        """The first line of a life, without its end."""
        plain = plain_values.plain(replace(header, spec=self._redacted(header.spec)))
        return json.dumps({"journal": _VERSION, **plain}).encode()

    def turn(self, turn: Turn) -> bytes:
        """A turn's line, without its end."""
        number, now, event, effects = turn
        kind = type(event)
        told = self._told(event) if kind in _TOLD_OTHERWISE else event
        kept = [
            (
                _NAMES[type(effect)],
                self._without_command(effect) if type(effect) in _COMMANDING else effect,
            )
            for effect in effects
            if type(effect) is not ArmWake and is_kept(effect)
        ]
        return _encode((number, now, _NAMES[kind], told, kept))

    def _told(self, event: Event) -> object:
        """An event without what is nobody's business."""
        kind = type(event)
        if kind in _CONVERSING:
            return self._veiled(event)
        if isinstance(event, ConfigApplied):
            return plain_values.plain(replace(event, spec=self._redacted(event.spec)))
        return self._without_command(event)

    def _veiled(self, event: Event) -> Event | msgspec.Raw:
        """An event whose conversations cannot be read any more. Changed as text: copies of it would cost more."""
        names = _OWN_SECRETS.get(type(event))
        if names is None:  # in what it holds, which may be thousands: one pass for all of them
            return msgspec.Raw(_SECRET.sub(self._veiled_field, _encode(event)))
        secrets = [(name, told) for name in names if (told := getattr(event, name))]
        if not secrets:
            return event
        text = _encode(event)
        for name, told in secrets:
            field, plain = b'"%b":' % name.encode(), _encode(told)
            text = text.replace(field + plain, b'%b"%b"' % (field, self._digest(plain[1:-1])))
        return msgspec.Raw(text)

    def _veiled_field(self, secret: re.Match[bytes]) -> bytes:
        name, told = secret.groups()
        return b'%b"%b"' % (name, self._digest(told))

    def _redacted(self, spec: Spec) -> Spec:
        models = {name: self._redacted_model(model) for name, model in spec.models.items()}
        return replace(spec, models=models)

    def _redacted_model(self, model: ModelSpec) -> ModelSpec:
        # An argument may be a password; that two commands differ is all that a replay needs to know.
        return replace(
            model,
            argv=self._redacted_command(model.argv),
            stop_argv=self._redacted_command(model.stop_argv) if model.stop_argv else (),
            env=tuple(f"{pair.partition('=')[0]}=" for pair in model.env),
            filters=FilterSpec(),  # they are no matter of the scheduler's
        )

    def _redacted_command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (*argv[:1], self._digest("\0".join(argv).encode()).decode())

    def _without_command(self, told: Any) -> Any:
        return replace(told, argv=self._redacted_command(told.argv))

    def _digest_of(self, text: bytes) -> bytes:
        return hashlib.blake2b(text, key=self._salt, digest_size=8).hexdigest().encode()


def read(line: bytes) -> Turn | Header | None:
    """What a line says; None for a torn one, or one of a version that says it otherwise."""
    try:
        match json.loads(line):
            case [int(number), float() | int() as now, str(event), dict(told), list(effects)]:
                return Turn(
                    EventNumber(number),
                    Seconds(now),
                    plain_values.restored(_EVENTS[event], told),
                    [plain_values.restored(_EFFECTS[kind], said) for kind, said in effects],
                )
            case {"journal": int(version), **header} if version == _VERSION:
                restored: Header = plain_values.restored(Header, header)
                return restored
            case _:
                return None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def is_header(line: bytes) -> bool:
    """Whether a line begins a life."""
    return line.startswith(b"{")


def _own_secrets(kind: Any) -> tuple[str, ...]:
    """The fields of a type that are a conversation's key."""
    return tuple(field.name for field in fields(kind) if field.name in _VEILED)


def _holds_secrets(kind: Any) -> bool:
    """Whether values that it holds have one."""
    hints: Mapping[str, object] = get_type_hints(kind)
    held = {each for field in fields(kind) for each in get_args(hints[field.name])}
    return any(is_dataclass(each) and (_own_secrets(each) or _holds_secrets(each)) for each in held)


_COMMANDING = frozenset(
    kind
    for kind in (*_EVENTS.values(), *_EFFECTS.values())
    if any(field.name == "argv" for field in fields(kind))
)
"""The events and effects that tell of a command, which may hold a password."""

_HOLDING_SECRETS = frozenset(filter(_holds_secrets, _EVENTS.values()))
_OWN_SECRETS = {
    kind: names
    for kind in _EVENTS.values()
    if (names := _own_secrets(kind)) and kind not in _HOLDING_SECRETS
}
_CONVERSING = _HOLDING_SECRETS | _OWN_SECRETS.keys()
"""The events that tell of conversations, most of them of one."""

_TOLD_OTHERWISE = frozenset({ConfigApplied, *_COMMANDING, *_CONVERSING})
