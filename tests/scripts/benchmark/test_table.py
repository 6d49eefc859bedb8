import json
import math

import pytest

from scripts.benchmark import table
from scripts.benchmark.figures import Who
from scripts.benchmark.targets import Row, Target

KEPT = Row(
    name="requests/s",
    unit="1/s",
    figures={Who.DIRECT: 42_000.0, Who.ROUTER: 2_500.0, Who.QMSUP: 5_000.0},
    target=Target(bound=1.5, at_most=False, against=Who.ROUTER),
)
MISSED = Row(
    name="memory",
    unit="KiB",
    figures={Who.QMSUP: 9.44},
    target=Target(bound=8),
    note="each client",
)
UNKNOWN = Row(
    name="swap", unit="ms", figures={Who.ROUTER: 50.0}, target=Target(bound=1.3, against=Who.ROUTER)
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, ""),
        (0.5, "0.50"),
        (12.34, "12.3"),
        (250.4, "250"),
        (83_000.0, "83 000"),
        (-1234.5, "-1 234"),
    ],
)
def test_a_number_shows_three_figures(value: float, text: str) -> None:
    assert table.number(value) == text


def test_the_table_has_a_column_for_each_peer_and_says_what_is_kept() -> None:
    lines = table.rendered([KEPT, MISSED, UNKNOWN]).splitlines()

    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:5]]
    assert cells[0] == [
        *("figure", "unit", "direct", "router", "nginx", "qmsup"),
        *("compared", "target", "kept"),
    ]
    assert cells[2] == [
        *("requests/s", "1/s", "42 000", "2 500", "", "5 000"),
        *("2.00", ">= 1.5 x router", "yes"),
    ]
    assert cells[3] == ["memory", "KiB", "", "", "", "9.44", "9.44", "<= 8", "NO"]
    assert cells[4] == ["swap", "ms", "", "50.0", "", "", "", "<= 1.3 x router", ""]


def test_every_line_of_the_table_is_as_wide_as_the_others() -> None:
    lines = table.rendered([KEPT, MISSED, UNKNOWN]).splitlines()[:5]

    assert len({len(line) for line in lines}) == 1


def test_notes_stand_below_the_table() -> None:
    assert table.rendered([KEPT, MISSED]).splitlines()[-2:] == ["", "- memory: each client"]
    assert "\n\n" not in table.rendered([KEPT])


def test_programs_read_null_where_nothing_is_known() -> None:
    told = json.loads(json.dumps(table.as_object([KEPT, UNKNOWN], {"cores": 2}), allow_nan=False))

    assert told["about"] == {"cores": 2}
    assert told["rows"][0] == {
        "figure": "requests/s",
        "unit": "1/s",
        "medians": {"direct": 42_000.0, "router": 2_500.0, "qmsup": 5_000.0},
        "compared": 2.0,
        "target": ">= 1.5 x router",
        "bound": 1.5,
        "against": "router",
        "kept": True,
        "note": None,
    }
    assert (told["rows"][1]["compared"], told["rows"][1]["kept"]) == (None, None)
