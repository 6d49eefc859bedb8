"""What events, verdicts and effects are made of: values that nobody changes, made for every event."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class a dataclass that the type checker holds to be frozen.

    While the program runs nothing hinders a change: that would triple the time it takes to make one, and each is made
    on the way of every request.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


class Word(StrEnum):
    """One of a few words, found in sets and dictionaries as fast as its text: an enum's own hash is a call."""

    __hash__ = str.__hash__
