"""`filters:` of a model: what it means, and what is wrong with it."""

import json
from collections.abc import Iterator, Mapping

from qmsup.config.model_shape import FiltersSection
from qmsup.config.problems import Path, Problems
from qmsup.spec import FilterSpec

_MODEL = "model"
_MODEL_ID = "${MODEL_ID}"
_OPENING = "${"


def names_of(section: FiltersSection, model: str) -> Iterator[tuple[str, str]]:
    """The names in `setParamsByID`: as they are meant, and as they are written."""
    for written in section.set_params_by_id:
        yield written.replace(_MODEL_ID, model), written


def resolve_filters(section: FiltersSection, model: str, problems: Problems) -> FilterSpec:
    """What a model's filters are. What cannot be is in `problems`."""
    path: Path = ("models", model, "filters")
    by_name: dict[str, Mapping[str, str]] = {}
    for name, written in names_of(section, model):
        here: Path = (*path, "setParamsByID", written)
        if _OPENING in name:
            problems.follow(here, "holds a macro that is not known here; write the name out")
        by_name[name] = _values(section.set_params_by_id[written], here, problems)
    stripped = (key.strip() for key in section.strip_params.split(","))
    return FilterSpec(
        # llama-swap leaves the model where it is too, without a word.
        strip=tuple(dict.fromkeys(key for key in stripped if key and key != _MODEL)),
        put=_values(section.set_params, (*path, "setParams"), problems),
        put_by_name=by_name,
    )


def _values(params: Mapping[str, object], path: Path, problems: Problems) -> dict[str, str]:
    told: dict[str, str] = {}
    for key, value in params.items():
        if key == _MODEL:
            problems.follow((*path, key), "cannot be set here; use useModelName instead")
            continue
        try:
            told[key] = json.dumps(value, allow_nan=False, separators=(",", ":"))
        except ValueError:
            problems.follow((*path, key), "holds a number that JSON cannot; write a finite one")
    return told
