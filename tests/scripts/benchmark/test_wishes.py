import json

from hypothesis import given
from hypothesis import strategies as st

from scripts.benchmark import wishes
from scripts.benchmark.wishes import Wish

COUNTS = st.integers(min_value=0, max_value=10**9)


@given(COUNTS, COUNTS, st.booleans(), COUNTS)
def test_a_wish_is_read_as_it_was_written(events: int, hz: int, gate: bool, tag: int) -> None:
    wish = Wish(events=events, hz=hz, gate=gate, tag=tag)

    assert wishes.read(wishes.body("m", wish)) == wish


def test_a_foreign_body_asks_for_a_plain_answer() -> None:
    assert wishes.read(b'{"model": "m"}') == Wish()


def test_a_body_is_a_chat_request_that_streams_when_events_are_wished() -> None:
    asked = json.loads(wishes.body("m", Wish(events=3)))

    assert (asked["model"], asked["stream"]) == ("m", True)
    assert json.loads(wishes.body("m"))["stream"] is False
