"""How long the scheduler's core takes for one event while the line is long, with no socket near."""

import json
import subprocess
import sys

from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who, ratio
from scripts.benchmark.programs import BenchError
from scripts.benchmark.targets import Row, Target, row

_EVENTS = 1_500  # of each history
_LONGEST_S = 120.0
_WORDS = {"default": "nobody past patience", "past": "all past patience"}
_NOTE = (
    "CPU time; for 50 models, under the policy of two that is the worse; telling places is left out"
)
_FEW, _MANY = "100", "10000"


def measure(course: Course) -> list[Row]:
    """In a process of its own, once: the core does the same each time, and the process takes the best of several."""
    course.say("decisions with a long line")
    told = _told(course)
    return [each for name, words in _WORDS.items() for each in _rows(words, told[name])]


def _rows(words: str, by_line: dict[str, dict[str, float]]) -> list[Row]:
    rows: list[Row] = []
    for waiting, figures in by_line.items():
        about = f"one event, {waiting} wait, {words}"
        bounds = {"p50": Target(bound=50.0), "p99": Target(bound=500.0)}
        rows += [
            row(
                f"{about}: {name}",
                "us",
                _tally(figures[name]),
                target if waiting == _MANY else None,
                note=_NOTE if waiting == _MANY else "",
            )
            for name, target in bounds.items()
        ]
    growth = ratio(by_line[_MANY]["p50"], by_line[_FEW]["p50"])
    name = f"one event, {_MANY} wait over {_FEW}, {words}: p50"
    return [*rows, row(name, "x", _tally(growth), Target(bound=3.0))]


def _tally(value: float) -> Tally:
    tally = Tally()
    tally.add(Who.QMSUP, value)
    return tally


def _told(course: Course) -> dict[str, dict[str, dict[str, float]]]:
    argv = [sys.executable, "-m", "scripts.benchmark.deciding"]
    argv += ["--events", str(course.many(_EVENTS))]
    process = course.programs.start("deciding", argv, stdout=subprocess.PIPE)
    try:
        text, _ = process.communicate(timeout=_LONGEST_S)
        told: dict[str, dict[str, dict[str, float]]] = json.loads(text)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        tail = course.programs.tail("deciding")
        raise BenchError(f"the decisions gave no result:\n{tail}") from None
    finally:
        course.programs.stop(process)
    return told
