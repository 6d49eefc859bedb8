"""How long children take, from the command line: `--load MODEL=S`, and a file for whoever has many."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import click

from qmsup.ids import ModelId
from qmsup.simulation.children import Pace
from qmsup.simulation.model_names import why_unknown
from qmsup.spec import Spec
from qmsup.units import Seconds

_KEYS = ("load", "stop", "fails")
_EXAMPLE = '{"chat": 4.5, "big": {"load": 30, "stop": 2, "fails": 1}}'


def pace_of(
    file: Path | None, loads: Sequence[str], *, default: float, stop: float, spec: Spec
) -> Pace:
    """How long each child takes.

    Args:
        file: a JSON object: model → seconds, or → an object with `load`, `stop` and `fails`.
        loads: `MODEL=S`, over those of the file.
        default: seconds of a load, where nothing is said.
        stop: seconds of a stop, where nothing is said.
        spec: names its models, by id or alias.

    Raises:
        click.UsageError: something is said in other words, or of a model that is not configured.
    """
    said = {} if file is None else _read(file)
    said |= {model: said.get(model, {}) | {"load": load} for model, load in map(_pair, loads)}
    named: dict[ModelId, Mapping[str, float]] = {}
    for name, values in said.items():
        model = spec.model_named(name)
        if model is None:
            raise click.UsageError(str(why_unknown(name, spec)))
        named[model.id] = values
    return Pace(
        load=Seconds(default),
        stop=Seconds(stop),
        loads={model: Seconds(v["load"]) for model, v in named.items() if "load" in v},
        stops={model: Seconds(v["stop"]) for model, v in named.items() if "stop" in v},
        fails={model: int(v["fails"]) for model, v in named.items() if "fails" in v},
    )


def _pair(text: str) -> tuple[str, float]:
    model, equals, seconds = text.rpartition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = math.nan
    if not equals or not model or not _is_time(value):
        raise click.UsageError(f"--load {text!r}: write MODEL=SECONDS, for example chat=4.5")
    return model, value


def _read(file: Path) -> dict[str, dict[str, float]]:
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{file}: is no JSON ({error}); write {_EXAMPLE}") from error
    if not isinstance(document, dict):
        raise click.UsageError(f"{file}: is no object; write {_EXAMPLE}")
    return {str(model): _values(file, str(model), said) for model, said in document.items()}


def _values(file: Path, model: str, said: object) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, value in (said if isinstance(said, dict) else {"load": said}).items():
        if key not in _KEYS:
            raise click.UsageError(f"{file}: {model}: {key!r} is not known; write {_EXAMPLE}")
        if not _is_time(value):
            raise click.UsageError(f"{file}: {model}: {key} is {value!r}; write a number from 0")
        values[key] = value
    return values


def _is_time(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= 1e9  # noqa: PLR2004 - seconds; NaN is neither
