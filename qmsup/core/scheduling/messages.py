"""What events, verdicts and effects are made of: values that nobody changes, made for every event."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Make a class a dataclass that the type checker holds to be frozen.

    While the program runs nothing hinders a change: that would triple the time it takes to make one, and each is made
    on the way of every request.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
