"""What pydantic found, in words that say what to do."""

import re
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from qmsup.config.document import Value
from qmsup.config.problems import Path, did_you_mean, shown
from qmsup.config.shape import SECTIONS, Shape, keys_of, place_of
from qmsup.errors import key_text

_UNITS = {"GB": "GB", "MB": "MB", "Ms": "milliseconds", "Timeout": "seconds"}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list ([a, b], or lines that start with -)",
    "dict": "a mapping: keys with values, indented below it",
    "model": "a mapping: keys with values, indented below it",
}
"""How the name of an error starts → what belongs there."""


def examine(tree: Value) -> list[tuple[Path, ErrorDetails]]:
    """Every way in which the shape of a document is wrong, with the key."""
    try:
        Shape.model_validate(tree)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True, include_input=True)
        return [(_path(d["loc"]), d) for d in details]
    return []


def _path(loc: tuple[int | str, ...]) -> Path:
    # A dictionary's key error ends in "[key]", a union's in the branch: both are told at the key itself.
    return loc[:-1] if loc and loc[-1] == "[key]" else loc


def say(path: Path, error: ErrorDetails, written: Value) -> str:
    """One problem's text.

    Args:
        path: the key.
        error: what pydantic says about it.
        written: the value as it stands in the file, before macros.
    """
    kind = error["type"]
    if kind == "extra_forbidden":
        return _unknown(path)
    if error["input"] is None:
        return "has no value; write one, or remove the line"
    wanted = _wanted(kind, path, error.get("ctx", {}))
    quotes = "; put it in quotes" if isinstance(error["input"], bool) and wanted == "text" else ""
    return f"must be {wanted}{shown(path, written)}{quotes or _number_hint(path, written)}"


def _wanted(kind: str, path: Path, context: Mapping[str, object]) -> str:
    unit = f", in {_unit(path)}" if _unit(path) else ""
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return f"{words} {str(context.get(name)).removesuffix('.0')}{unit}"
    if kind == "literal_error":
        return f"one of {str(context.get('expected', '')).replace(chr(39), '')}"
    for start, words in _WANTED.items():
        if kind.startswith(start):
            return words + (unit if words == "a number" else "")
    return "another value"


def _unit(path: Path) -> str:
    key = str(path[-1]) if path else ""
    return next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")


def _number_hint(path: Path, written: Value) -> str:
    is_near = isinstance(written, str) and re.fullmatch(r"\s*[0-9.]+\s*[A-Za-z]{0,12}\s*", written)
    return "; write the number alone, without quotes or unit" if is_near and _unit(path) else ""


def _unknown(path: Path) -> str:
    key = str(path[-1])
    section = SECTIONS.get(place_of(path[:-1]))
    known = keys_of(section) if section is not None else ()
    if hint := did_you_mean(key, known):
        return f"unknown key{hint}"
    elsewhere = [place for place, s in SECTIONS.items() if key in keys_of(s)]
    if elsewhere:
        place = elsewhere[0]
        return f"unknown key here; it belongs {'under ' + place if place else 'at the top level'}"
    return f"unknown key; known are {', '.join(key_text(k) for k in known)}, and any x-…"
