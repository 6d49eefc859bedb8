"""What of the metrics is left for a client that may not see all."""

import pytest

from qmsup.listener.metrics_scope import within

_TEXT = """\
# HELP qmsup_requests_total Requests.
# TYPE qmsup_requests_total counter
qmsup_requests_total{code="200",listener="main",model="a"} 3.0
qmsup_requests_total{model="a",listener="other",code="200"} 4.0
qmsup_requests_total{model="b",listener="main",code="200"} 5.0
qmsup_line_length 0.0
qmsup_host_up{host="local"} 1.0
qmsup_host_up{host="far"} 1.0
qmsup_vram_bytes{gpu="model=\\"b\\"",kind="used"} 7.0
"""


def _left(**scope: tuple[str, ...]) -> list[str]:
    return [line.rpartition(" ")[2] for line in within(_TEXT, scope).splitlines()[2:]]


def test_of_all_labels_each_has_to_be_within() -> None:
    assert _left(model=("a",), listener=("main",), host=("local",)) == ["3.0", "0.0", "1.0", "7.0"]


def test_a_label_that_is_not_named_may_hold_anything() -> None:
    assert _left(model=("a",)) == ["3.0", "4.0", "0.0", "1.0", "1.0", "7.0"]
    assert within(_TEXT, {}) == _TEXT


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "two\nlines", 'a",model="b'])
def test_a_name_may_hold_what_a_format_escapes(name: str) -> None:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    line = f'x{{model="{escaped}",state="ready"}} 1.0\n'

    assert within(line, {"model": (name,)}) == line
    assert within(line, {"model": ("b", "a")}) == ""
