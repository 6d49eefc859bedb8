"""Frozen values to plain ones and back; what does not fit is refused, never guessed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

import pytest

from qmsup.actors import plain_values
from qmsup.spec import Spec
from tests.support.journals import SPEC, secretive_spec

Name = NewType("Name", str)
Number = NewType("Number", int)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Other:
    parts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Thing:
    name: Name
    size: float | None = None
    colour: Colour = Colour.RED
    pair: tuple[int, str] = (1, "x")
    nested: "tuple[Other | Name, ...]" = ()
    table: Mapping[Name, Other] = field(default_factory=dict)
    by_number: Mapping[Number, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    secret: str = field(default="", repr=False)


THING = Thing(
    name=Name("n"),
    size=1.5,
    pair=(2, "y"),
    nested=(Other(parts=(1, 2)), Name("z")),
    table={Name("k"): Other(parts=())},
    by_number={Number(3_000_001): 5},
    known=frozenset({"q"}),
)


def test_every_kind_of_field_comes_back() -> None:
    assert plain_values.restored(Thing, plain_values.plain(THING)) == THING


def test_a_configuration_comes_back_with_its_enums_and_its_expressions() -> None:
    spec = secretive_spec()
    back = plain_values.restored(Spec, plain_values.plain(spec))

    assert back.matrix == spec.matrix
    assert back.models == spec.models
    assert back.on_exit is spec.on_exit
    assert plain_values.restored(Spec, plain_values.plain(SPEC)) == SPEC


def test_a_field_hidden_from_repr_is_left_out() -> None:
    told = plain_values.plain(Thing(name=Name("n"), secret="hush"))

    assert "hush" not in str(told)
    assert plain_values.restored(Thing, told).secret == ""


def test_unknown_fields_are_ignored_and_missing_ones_take_their_default() -> None:
    thing = plain_values.restored(Thing, {"name": "n", "of a later version": [1]})

    assert thing == Thing(name=Name("n"))


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"name": 3},
        {"name": "n", "size": "big"},
        {"name": "n", "colour": "blue"},
        {"name": "n", "pair": [1]},
        {"name": "n", "pair": [True, "x"]},
        {"name": "n", "nested": [{"@": "Thing", "parts": []}]},
        {"name": "n", "table": []},
        {"name": "n", "known": {}},
        {"name": "n", "@": "Other"},
        [],
        None,
    ],
)
def test_what_is_something_else_is_refused(told: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        plain_values.restored(Thing, told)


def test_a_whole_number_will_do_for_a_float() -> None:
    size = plain_values.restored(Thing, {"name": "n", "size": 2}).size

    assert (size, type(size)) == (2.0, float)
