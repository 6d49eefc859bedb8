"""How long loads take, as the command line says it."""

from pathlib import Path

import click
import pytest

from qmsup.ids import ModelId
from qmsup.simulation.children import Pace
from qmsup.simulation.pace_options import pace_of
from tests.support.scheduling import spec_of

SPEC = spec_of("a b=c")


def pace(file: Path | None, *loads: str) -> Pace:
    return pace_of(file, loads, default=5.0, stop=0.3, spec=SPEC)


def test_what_is_said_on_the_line_counts_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    file.write_text('{"a": 7, "b=c": {"load": 9, "stop": 2, "fails": 3}}')

    got = pace(file, "b=c=4.5")

    assert (got.load_of(ModelId("a")), got.load_of(ModelId("b=c"))) == (7.0, 4.5)
    assert (got.stop_of(ModelId("b=c")), got.stop_of(ModelId("a"))) == (2.0, 0.3)
    assert got.fails == {"b=c": 3}
    assert got.load_of(ModelId("other")) == 5.0


@pytest.mark.parametrize("load", ["a", "=3", "a=", "a=fast", "a=-1", "a=nan", "a=inf"])
def test_a_load_time_that_is_none_is_said_back_with_an_example(load: str) -> None:
    with pytest.raises(click.UsageError, match=r"write MODEL=SECONDS, for example chat=4\.5"):
        pace(None, load)


def test_a_model_that_is_not_configured_is_a_slip() -> None:
    with pytest.raises(click.UsageError, match="no model 'ghost' is configured; there are a, b=c"):
        pace(None, "ghost=3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 7", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "is no object"),
        ('{"a": "fast"}', "a: load is 'fast'"),
        ('{"a": true}', "a: load is True"),
        ('{"a": NaN}', "a: load is nan"),
        ('{"a": {"speed": 3}}', "a: 'speed' is not known"),
        ('{"a": {"stop": -1}}', "a: stop is -1"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    file.write_text(text)

    with pytest.raises(click.UsageError, match=says):
        pace(file)
