"""From JSON lines to a trace. A line that cannot be used is named, with its number and what is wrong with it."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId
from qmsup.simulation.traces import Arrivals, Ask, Item, Loop, Trace
from qmsup.units import Seconds, seconds_from_ms

_LONGEST = 1e9
"""Seconds: some thirty years. More is a slip, such as a date, or milliseconds."""
_MOST = 10_000_000
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file holds.

    Attributes:
        problems: the lines that cannot be used: `FILE:LINE: what is wrong; what to do`.
    """

    trace: Trace
    problems: tuple[str, ...]


def _any_name(_: str) -> None:
    """Whatever a model is called, nothing is wrong with it."""


def read_file(path: Path, wrong: Callable[[str], str | None] = _any_name) -> Reading:
    """The trace in a file; `wrong` is that of `read`.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return read(file, str(path), wrong)


def read(
    lines: Iterable[bytes], name: str, wrong: Callable[[str], str | None] = _any_name
) -> Reading:
    """The trace in some lines; empty ones are passed over.

    Args:
        lines: each a JSON object.
        name: what problems call the file.
        wrong: what is wrong with a model's name, and what to do; None = nothing.
    """
    items: list[Item] = []
    problems: list[str] = []
    agents: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = _item(line, number)
            _check_model(item, wrong)
            if isinstance(item, Loop):
                _note_agent(agents, item.name, number)
            items.append(item)
        except _BadLineError as error:
            problems.append(f"{name}:{number}: {error}")
    return Reading(tuple(items), tuple(problems))


class _BadLineError(Exception):
    """What is wrong with one line, and what to do."""


def _check_model(item: Item, wrong: Callable[[str], str | None]) -> None:
    if problem := wrong(item.ask.model):
        raise _BadLineError(f"model: {problem}")


def _note_agent(agents: dict[str, int], name: str, number: int) -> None:
    other = agents.setdefault(name, number)
    if other != number:
        raise _BadLineError(f"agent: {name!r} is on line {other} already; give each a name")


def _item(line: bytes, number: int) -> Item:
    fields = _Fields(_document(line))
    item = _loop(fields) if fields.has("agent") else _arrivals(fields, number)
    fields.end()
    return item


def _document(line: bytes) -> dict[str, object]:
    try:
        document = json.loads(line.decode(), object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise _BadLineError("is not UTF-8 text; save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise _BadLineError(
            f"is no JSON: {error.msg} at column {error.colno}; write one object a line"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits, a thousand brackets
        raise _BadLineError("is no JSON that makes sense; write one object a line") from error
    if not isinstance(document, dict):
        raise _BadLineError(f"is {_shown(document)} and no object; write {{...}}")
    return document


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _BadLineError(f"{twice}: is there twice; keep one")
    return document


def _arrivals(fields: "_Fields", number: int) -> Arrivals:
    at = fields.seconds("t")
    times = fields.whole("times", 1)
    every = fields.seconds("every", Seconds(0.0))
    return Arrivals(name=f"{number}", ask=_ask(fields), at=at, times=times, every=every)


def _loop(fields: "_Fields") -> Loop:
    name = fields.text("agent")
    return Loop(
        name=name,
        at=fields.seconds("start", Seconds(0.0)),
        rounds=fields.whole("rounds"),
        gap=fields.seconds("gap", Seconds(0.0)),
        last=fields.outcome("last", Outcome.FINISHED),
        ask=_ask(fields, Outcome.TOOL_CALLS, conversation=name),
    )


def _ask(fields: "_Fields", outcome: Outcome = Outcome.FINISHED, *, conversation: str = "") -> Ask:
    return Ask(
        model=ModelId(fields.text("model")),
        duration=fields.seconds("duration"),
        outcome=fields.outcome("outcome", outcome),
        hold=fields.milliseconds("hold_ms"),
        patience=fields.milliseconds("patience_ms"),
        timeout=fields.milliseconds("timeout_ms"),
        conversation=fields.text("conversation", conversation),
        abandon_after=fields.seconds_or_none("abandon_after"),
    )


class _Fields:
    """The fields of one line, each taken once; what is left at the end is not known."""

    def __init__(self, document: dict[str, object]) -> None:
        self._left = document
        self._known: list[str] = []

    def has(self, key: str) -> bool:
        return key in self._left

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise _BadLineError(f"{key}: is {_shown(value)}; write a name in quotes")
        if not value.isprintable():  # nor can half a character be printed, which JSON can spell
            raise _BadLineError(f"{key}: holds what cannot be printed; write a plain name")
        return value

    def seconds(self, key: str, default: Seconds | None = None) -> Seconds:
        return Seconds(self._number(key, default))

    def seconds_or_none(self, key: str) -> Seconds | None:
        return self.seconds(key) if self._is_given(key) else None

    def milliseconds(self, key: str) -> Seconds | None:
        return seconds_from_ms(self._number(key, None)) if self._is_given(key) else None

    def whole(self, key: str, default: int | None = None) -> int:
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise _BadLineError(
                f"{key}: is {_shown(value)}; write a whole number from 1 to {_MOST}"
            )
        return value

    def outcome(self, key: str, default: Outcome) -> Outcome:
        value = self._take(key, default)
        try:
            return Outcome(value)  # type: ignore[arg-type]  # anything may be asked for
        except (ValueError, TypeError) as error:
            words = ", ".join(Outcome)
            raise _BadLineError(f"{key}: is {_shown(value)}; write one of {words}") from error

    def end(self) -> None:
        for key in self._left:
            near = get_close_matches(key, self._known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(self._known)}"
            raise _BadLineError(f"{key[:_SHOWN]}: is not known; {hint}")

    def _is_given(self, key: str) -> bool:
        """A field that is null counts as absent."""
        self._known.append(key)
        if self._left.get(key) is None:
            self._left.pop(key, None)
            return False
        return True

    def _take(self, key: str, default: object) -> object:
        if self._is_given(key):
            return self._left.pop(key)
        if default is None:
            raise _BadLineError(f"{key}: is missing; every line of this kind has it")
        return default

    def _number(self, key: str, default: float | None) -> float:
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _BadLineError(f"{key}: is {_shown(value)}; write a number")
        if math.isnan(value) or not 0 <= value <= _LONGEST:
            raise _BadLineError(f"{key}: is {_shown(value)}; write a number from 0 to 1e9")
        return float(value)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
