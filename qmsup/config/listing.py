"""Every key of a configuration with what it means, for people to read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from qmsup.config.foreign import NO_EFFECT
from qmsup.config.shape import SECTIONS


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key.

    Attributes:
        path: where it stands, with NAME for names of one's own: `models.NAME.ttl`.
        default: what counts where it is not given, as it would be written; empty = nothing.
        meaning: in words, with the values it may have where these are few.
    """

    path: str
    default: str
    meaning: str


def listed_keys() -> tuple[Key, ...]:
    """All that mean something here, a section's together; llama-swap's that have no effect are left out."""
    return tuple(_keys())


def _keys() -> Iterator[Key]:
    for place, section in SECTIONS.items():
        for name, field in section.model_fields.items():
            if field.description == NO_EFFECT:
                continue
            path = f"{place}.{field.alias or name}".lstrip(".")
            yield Key(path=path, default=_default(field), meaning=_meaning(field))


def _default(field: FieldInfo) -> str:
    # What a factory makes is an empty one of its kind.
    if field.default_factory is not None or field.default in (None, ""):
        return ""
    value = field.default
    if isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def _meaning(field: FieldInfo) -> str:
    choices = ", ".join(str(value) for value in _choices(field.annotation))
    told = field.description or ""
    return f"{told} ({choices})" if choices else told


def _choices(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for inner in get_args(annotation):
            yield from _choices(inner)
