"""The lines of a journal: a life's header, and the turns after it, as JSON. No secrets and no prompt text.

A header is an object, a turn an array: `[number, now, event, {…}, [[effect, {…}], …]]`. Encoding a turn takes about
two microseconds, so that the scheduler can do it for each of its turns; reading one takes its time.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
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
            secrets = [*_secrets_in(event, _CONVERSING[kind])]
            return self._veiled(event, secrets) if secrets else event
        if isinstance(event, ConfigApplied):
            return plain_values.plain(replace(event, spec=self._redacted(event.spec)))
        return self._without_command(event)

    def _veiled(self, event: Event, secrets: list[tuple[str, str]]) -> msgspec.Raw:
        """An event whose conversations cannot be read any more. Changed as text: copies of it would cost more."""
        text = _encode(event)
        for name, told in secrets:
            field = b'"%b":' % name.encode()
            text = text.replace(field + _encode(told), field + _encode(self._digest(told)))
        return msgspec.Raw(text)

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
        return (*argv[:1], self._digest("\0".join(argv)))

    def _without_command(self, told: Any) -> Any:
        return replace(told, argv=self._redacted_command(told.argv))

    def _digest_of(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), key=self._salt, digest_size=8).hexdigest()


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


def _conversing_fields(kind: Any) -> tuple[str, ...]:
    """The fields of a type that are a conversation's key, or hold values that have one."""
    hints: Mapping[str, object] = get_type_hints(kind)
    return tuple(
        field.name
        for field in fields(kind)
        if field.name in _VEILED
        or any(is_dataclass(a) and _conversing_fields(a) for a in get_args(hints[field.name]))
    )


def _secrets_in(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        told = getattr(value, name)
        if name not in _VEILED:
            for each in told:
                yield from _secrets_in(each, _conversing_fields(type(each)))
        elif told:
            yield name, told


_COMMANDING = frozenset(
    kind
    for kind in (*_EVENTS.values(), *_EFFECTS.values())
    if any(field.name == "argv" for field in fields(kind))
)
"""The events and effects that tell of a command, which may hold a password."""

_CONVERSING = {kind: names for kind in _EVENTS.values() if (names := _conversing_fields(kind))}
"""The events that tell of conversations, and where."""

_TOLD_OTHERWISE = frozenset({ConfigApplied, *_COMMANDING, *_CONVERSING})
