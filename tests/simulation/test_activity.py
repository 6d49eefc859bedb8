"""A log of a live box becomes a trace that can be read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.scheduling.events import Outcome
from qmsup.simulation.activity import recording_of
from qmsup.simulation.lines import read
from qmsup.simulation.traces import Arrivals, Trace


def entry(at: float, ms: float, wait_ms: float | None = 0, **others: object) -> bytes:
    line = {
        "time": at,
        "level": "info",
        "logger": "qmsup.relay",
        "event": "request",
        "model": "a",
        "status": 200,
        "outcome": "finished",
        "ms": ms,
        "wait_ms": wait_ms,
    }
    return json.dumps(line | others).encode()


def trace_of(*log: bytes) -> Trace:
    reading = read([line.encode() for line in recording_of(log).lines], "x")
    assert reading.problems == ()
    return reading.trace


def test_a_request_comes_when_it_came_and_its_answer_takes_what_it_took() -> None:
    first, second = trace_of(
        entry(1700000010.0, 4000, 1500, model="b", outcome="tool_calls"),
        entry(1700000005.5, 500),
    )

    assert isinstance(first, Arrivals)
    assert isinstance(second, Arrivals)
    assert (first.at, first.ask.model, first.ask.duration) == (0.0, "a", 0.5)
    assert (second.at, second.ask.model, second.ask.duration) == (1.0, "b", 2.5)
    assert second.ask.outcome is Outcome.TOOL_CALLS


def test_what_was_refused_is_asked_again_and_takes_what_others_took() -> None:
    trace = trace_of(
        entry(10, 1000),
        entry(20, 3000),
        entry(30, 5000),
        entry(40, 7, None, status=429, outcome=""),
        entry(50, 7, None, status=429, outcome="", model="never-served"),
    )

    assert [item.ask.duration for item in trace] == [1.0, 3.0, 5.0, 3.0, 0.0]
    assert trace[3].ask.abandon_after is None


def test_a_client_that_left_the_line_leaves_it_again() -> None:
    (item,) = trace_of(entry(10, 2500, None, status=0, outcome="abandoned"))

    assert item.ask.abandon_after == 2.5


@pytest.mark.parametrize(
    "line",
    [
        b"12:00:01.123 info    request method=POST",
        b"[]",
        b"[" * 100_000,
        b'{"event": "swap.started"}',
        entry(10, 5, model=None),
        entry(10, -5),
        entry(10, 5, time=True),
        b"\xff\xfe",
    ],
)
def test_other_lines_are_passed_over_and_counted(line: bytes) -> None:
    recording = recording_of([entry(10, 5), b"\n", line])

    assert (len(recording.lines), recording.passed_over) == (1, 1)


@given(
    st.lists(
        st.builds(
            entry,
            at=st.floats(0, 2e9),
            ms=st.integers(0, 10**8),
            wait_ms=st.none() | st.integers(0, 10**8),
            model=st.sampled_from(["a", "b/c", "ü"]),
            outcome=st.sampled_from(["", "abandoned", "odd", *Outcome]),
        ),
        max_size=6,
    )
)
def test_whatever_was_logged_gives_a_trace_that_is_read_whole(log: list[bytes]) -> None:
    lines = recording_of(log).lines
    times = [json.loads(line)["t"] for line in lines]

    assert times == sorted(times)
    assert len(lines) == len(log)
    if not times or times[-1] <= 1e9:
        assert read([line.encode() for line in lines], "x").problems == ()
