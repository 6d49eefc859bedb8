"""Every line of a trace is understood, or named with what is wrong with it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId
from qmsup.simulation.lines import read, read_file
from qmsup.simulation.traces import Arrivals, Ask, Loop
from qmsup.units import Seconds

GOOD = b'{"t": 1, "model": "a", "duration": 2}'

BAD_LINES = {
    "no JSON": (b"t=1 model=a", "is no JSON: Expecting value at column 1"),
    "half a line": (b'{"t": 1, "model"', "is no JSON"),
    "no UTF-8": (b'{"t": 1, "model": "\xff"}', "is not UTF-8 text"),
    "no object": (b"[1, 2]", "is [1, 2] and no object"),
    "too deep": (b"[" * 100_000, "is no JSON that makes sense"),
    "a number without end": (b'{"t": ' + b"9" * 5000 + b"}", "is no JSON that makes sense"),
    "a key twice": (b'{"t": 1, "t": 2}', "t: is there twice"),
    "no time": (b'{"model": "a", "duration": 2}', "t: is missing"),
    "no model": (b'{"t": 1, "duration": 2}', "model: is missing"),
    "an empty model": (b'{"t": 1, "model": "", "duration": 2}', 'model: is ""'),
    "half a character": (b'{"t": 1, "model": "\\ud800", "duration": 2}', "cannot be printed"),
    "a line break": (b'{"t": 1, "model": "a\\nb", "duration": 2}', "cannot be printed"),
    "a model that is a number": (b'{"t": 1, "model": 7, "duration": 2}', "model: is 7"),
    "no duration": (b'{"t": 1, "model": "a"}', "duration: is missing"),
    "a time in words": (b'{"t": "noon", "model": "a", "duration": 2}', 't: is "noon"; write a'),
    "a time that is true": (b'{"t": true, "model": "a", "duration": 2}', "t: is true"),
    "before the beginning": (b'{"t": -1, "model": "a", "duration": 2}', "t: is -1; write a number"),
    "not a number": (b'{"t": NaN, "model": "a", "duration": 2}', "t: is NaN"),
    "for ever": (b'{"t": 1, "model": "a", "duration": 1e999}', "duration: is Infinity"),
    "a date": (b'{"t": 1764479813000, "model": "a", "duration": 2}', "from 0 to 1e9"),
    "no such outcome": (GOOD[:-1] + b', "outcome": "fine"}', 'outcome: is "fine"; write one of'),
    "an outcome that is a list": (GOOD[:-1] + b', "outcome": []}', "outcome: is []"),
    "a negative hold": (GOOD[:-1] + b', "hold_ms": -5}', "hold_ms: is -5"),
    "a slip of the pen": (GOOD[:-1] + b', "patiense_ms": 5}', "did you mean 'patience_ms'?"),
    "something else": (GOOD[:-1] + b', "zzz": 5}', "zzz: is not known; known are t, "),
    "no times": (GOOD[:-1] + b', "times": 0}', "times: is 0; write a whole number from 1"),
    "half times": (GOOD[:-1] + b', "times": 1.5}', "times: is 1.5"),
    "rounds of no agent": (GOOD[:-1] + b', "rounds": 5}', "rounds: is not known"),
    "an agent with a time": (b'{"agent": "x", "t": 1}', "rounds: is missing"),
    "very many rounds": (b'{"agent": "x", "rounds": 1e99}', "rounds: is 1e+99"),
    "a long story": (b'{"t": "' + b"x" * 500 + b'"}', "…; write a number"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_the_others_are_read(name: str) -> None:
    line, says = BAD_LINES[name]

    reading = read([GOOD, b"\n", line, GOOD], "day.jsonl")

    assert len(reading.trace) == 2
    (problem,) = reading.problems
    assert problem.startswith("day.jsonl:3: ")
    assert says in problem
    assert len(problem) < 250


def test_a_request_says_all_that_its_headers_would() -> None:
    line = (
        b'{"t": 3, "times": 4, "every": 0.5, "model": "m", "duration": 2.5, "outcome": "unknown",'
        b' "hold_ms": 0, "patience_ms": 1500, "timeout_ms": 250, "conversation": "c",'
        b' "abandon_after": 9}'
    )

    assert read([line], "x").trace == (
        Arrivals(
            name="1",
            at=Seconds(3.0),
            times=4,
            every=Seconds(0.5),
            ask=Ask(
                model=ModelId("m"),
                duration=Seconds(2.5),
                outcome=Outcome.UNKNOWN,
                hold=Seconds(0.0),
                patience=Seconds(1.5),
                timeout=Seconds(0.25),
                conversation="c",
                abandon_after=Seconds(9.0),
            ),
        ),
    )


def test_an_agent_calls_tools_until_its_last_round_and_is_one_conversation() -> None:
    line = b'{"agent": "x", "model": "m", "rounds": 3, "duration": 1, "gap": 0.4, "hold_ms": null}'

    (loop,) = read([line], "x").trace

    assert isinstance(loop, Loop)
    assert (loop.at, loop.rounds, loop.gap, loop.last) == (0.0, 3, 0.4, Outcome.FINISHED)
    assert loop.ask == Ask(
        model=ModelId("m"),
        duration=Seconds(1.0),
        outcome=Outcome.TOOL_CALLS,
        conversation="x",
    )


def test_two_agents_of_one_name_are_not_told_apart_so_the_second_is_a_bad_line() -> None:
    line = b'{"agent": "x", "model": "m", "rounds": 3, "duration": 1}'

    reading = read([line, line], "x")

    assert len(reading.trace) == 1
    assert reading.problems == ("x:2: agent: 'x' is on line 1 already; give each a name",)


def test_a_line_whose_model_is_wrong_is_a_bad_line() -> None:
    line = b'{"t": 1, "model": "%s", "duration": 1}'

    reading = read([line % b"m", line % b"n"], "x", lambda name: "no" if name == "n" else None)

    assert len(reading.trace) == 1
    assert reading.problems == ("x:2: model: no",)


@given(st.lists(st.binary(max_size=40) | st.sampled_from([GOOD, GOOD.replace(b"2", b"{}")])))
def test_whatever_a_file_holds_it_is_read_or_named(lines: list[bytes]) -> None:
    reading = read(lines, "x")

    assert len(reading.trace) + len(reading.problems) == sum(bool(line.strip()) for line in lines)


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(GOOD + b"\r\n\r\n" + GOOD)

    assert [item.name for item in read_file(file).trace] == ["1", "3"]
