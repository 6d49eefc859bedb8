"""Frozen values as what JSON can hold, and back by the types of their fields.

A dataclass becomes an object with its class's name under "@", for unions that cannot be told apart otherwise. Fields
that are hidden from a `repr` are secrets and left out. Unknown fields are ignored, missing ones take their default.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

_KIND = "@"


class OtherTypeError(ValueError):
    """A plain value is not what a value of the wanted type looks like."""


def plain(value: object) -> Any:
    """A value of dataclasses, mappings, sequences, enums and simple values, as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        told = {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.repr}
        return {_KIND: type(value).__name__, **told}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value


def restored(hint: Any, value: Any) -> Any:
    """The value of this type that `plain` made this of.

    Raises:
        ValueError: it is of no such type (OtherTypeError), or no member of an enum.
    """
    if isinstance(hint, NewType):
        return restored(hint.__supertype__, value)
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        return _one_of(get_args(hint), value)
    if origin is not None:
        return _container(origin, get_args(hint), value)
    if is_dataclass(hint):
        return _dataclass(hint, value)
    return _simple(hint, value)


def _one_of(hints: tuple[Any, ...], value: Any) -> Any:
    for hint in hints:
        try:
            return restored(hint, value)
        except ValueError:
            continue
    raise OtherTypeError(f"{value!r:.80} is none of {hints}")


def _container(origin: Any, hints: tuple[Any, ...], value: Any) -> Any:
    if issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise OtherTypeError(f"{value!r:.80} is no mapping")
        return {_key(hints[0], k): restored(hints[1], v) for k, v in value.items()}
    if not isinstance(value, list):
        raise OtherTypeError(f"{value!r:.80} is no list")
    if origin is tuple and Ellipsis not in hints:
        return tuple(restored(hint, each) for hint, each in zip(hints, value, strict=True))
    return origin(restored(hints[0], each) for each in value)


def _key(hint: Any, key: str) -> Any:
    """Of a mapping, whose keys are text in JSON whatever they are."""
    plain_type = hint
    while isinstance(plain_type, NewType):
        plain_type = plain_type.__supertype__
    return int(key) if plain_type is int else restored(hint, key)


def _dataclass(kind: Any, value: Any) -> Any:
    if not isinstance(value, dict) or value.get(_KIND, kind.__name__) != kind.__name__:
        raise OtherTypeError(f"{value!r:.80} is no {kind.__name__}")
    given: dict[str, object] = {}
    for field, hint in _typed_fields(kind):
        if field.name in value:
            given[field.name] = restored(hint, value[field.name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise OtherTypeError(f"{kind.__name__} has no {field.name!r}")
    return kind(**given)


@cache
def _typed_fields(kind: Any) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in fields(kind) if field.init)


def _simple(kind: Any, value: Any) -> Any:
    if issubclass(kind, Enum):
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise OtherTypeError(f"{value!r:.80} is no {kind.__name__}")
    return value
