"""The JSON Schema says what the loader takes: checked against the examples, key by key."""

from pathlib import Path

import pytest

from qmsup.config import json_schema
from qmsup.config.document import Value, read
from qmsup.config.shape import SECTIONS, keys_of

EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").glob("*.yaml"))


def _dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _at(schema: dict[str, object], root: dict[str, object]) -> dict[str, object]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    assert isinstance(reference, str)
    return _dict(_dict(root["$defs"])[reference.removeprefix("#/$defs/")])


def _unknown(value: Value, schema: dict[str, object], root: dict[str, object]) -> list[str]:
    """Keys of a document that its schema does not know, or demands in vain."""
    schema = _at(schema, root)
    if not isinstance(value, dict) or schema.get("type") != "object":
        return []
    known = _dict(schema.get("properties", {}))
    other = schema.get("additionalProperties", True)
    required = schema.get("required", [])
    assert isinstance(required, list)
    found = [f"{key} is missing" for key in required if key not in value]
    for key, inner in value.items():
        if key in known:
            found += _unknown(inner, _dict(known[key]), root)
        elif isinstance(other, dict):
            found += _unknown(inner, other, root)
        elif other is False and not key.startswith("x-"):
            found.append(key)
    return found


def _lacks(schema: dict[str, object], document: dict[str, object]) -> list[str]:
    """The keys of which a document would need one, and has none."""
    ways = schema["anyOf"]
    assert isinstance(ways, list)
    needed = [key for way in ways for key in way["required"]]
    return [] if any(key in document for key in needed) else needed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_have_the_schemas_keys(path: Path) -> None:
    schema = json_schema()

    assert _unknown(read(path.read_text()).root, schema, schema) == []


def test_a_strange_key_is_seen() -> None:
    schema = json_schema()

    assert _unknown({"models": {"m": {"cmdd": "x"}}}, schema, schema) == ["cmd is missing", "cmdd"]


@pytest.mark.parametrize("place", SECTIONS)
def test_every_key_of_a_section_is_in_the_schema(place: str) -> None:
    schema = json_schema()
    section = SECTIONS[place]
    found = schema if place == "" else _dict(_dict(schema["$defs"])[section.__name__])

    assert tuple(_dict(found["properties"])) == keys_of(section)
    assert found["additionalProperties"] is False


@pytest.mark.parametrize("place", SECTIONS)
def test_every_key_is_told_what_it_means(place: str) -> None:
    units = {None, "in seconds", "in milliseconds", "in GB of 1024 MiB"}

    bare = [name for name, f in SECTIONS[place].model_fields.items() if f.description in units]

    assert bare == []


def test_models_need_not_be_here() -> None:
    assert _lacks(json_schema(), {"peers": {}}) == _lacks(json_schema(), {"hosts": {}}) == []
    assert _lacks(json_schema(), {"groups": {}}) == ["models", "peers", "hosts"]


def test_bounds_and_units_are_in_the_schema() -> None:
    budget = _dict(_dict(json_schema()["properties"])["vramBudgetGB"])

    assert budget["type"] == "number"
    assert budget["minimum"] == 0
