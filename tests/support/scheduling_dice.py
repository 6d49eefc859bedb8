"""Long histories of a scheduler, thrown with weighted dice: hypothesis shrinks well, but it seldom gets as far.

A history is plain turns, so it can be played again, cut down to what it fails by, and told as a test.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

from qmsup.core.scheduling.events import Outcome
from qmsup.ids import ModelId, WorkerId
from tests.support.scheduling_machine import SchedulerMachine
from tests.support.scheduling_specs import SPECS

LENGTHS = (30, 60, 150)
_PLAYS = 400
"""At most this many to cut a history down: a minute."""

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One rule of the machine with what it is given. It fits any history: what it picks, it picks by number."""

    rule: str
    values: Values


def throw(dice: random.Random, lengths: Sequence[int] = LENGTHS) -> list[Turn]:
    """A history of one of these lengths."""
    rules, throws, weights = zip(*_RULES, strict=True)
    picks = dice.choices(range(len(rules)), weights, k=dice.choice(lengths))
    return [Turn(rule=rules[pick], values=throws[pick](dice)) for pick in picks]


def play(machine: SchedulerMachine, configuration: str, turns: Sequence[Turn]) -> None:
    """Let all of it happen, and come to an end; raises what is broken by it."""
    machine.begin(name=configuration)
    for turn in turns:
        _take(machine, turn)
    machine.teardown()


def shortest(
    configuration: str,
    turns: Sequence[Turn],
    make: Callable[[], SchedulerMachine] = SchedulerMachine,
) -> list[Turn]:
    """What is left of a failing history once nothing more can be taken out of it: it fails at the same place."""
    left = list(turns)
    place = _failure(make(), configuration, left)
    assert place is not None, "the history does not fail"
    plays, size = 0, len(left) // 2
    while size and plays < _PLAYS:
        start = 0
        while start < len(left) and plays < _PLAYS:
            without = left[:start] + left[start + size :]
            plays += 1
            if _failure(make(), configuration, without) == place:
                left = without
            else:
                start += size
        size //= 2
    return left


def as_code(configuration: str, turns: Sequence[Turn]) -> str:
    """The history as the body of a test."""
    lines = ["machine = SchedulerMachine()", f"machine.begin(name={configuration!r})"]
    for turn in turns:
        values = ", ".join(f"{name}={_word(value)}" for name, value in turn.values.items())
        lines.append(f"machine.{turn.rule}({values})")
    return "\n".join([*lines, "machine.teardown()"])


def _take(machine: SchedulerMachine, turn: Turn) -> None:
    # What hypothesis is told by preconditions.
    if turn.rule == "lose" and len(machine.live) < 2:
        return
    if turn.rule == "reload" and machine.world.has_ended:
        return
    getattr(machine, turn.rule)(**turn.values)


def _failure(
    machine: SchedulerMachine, configuration: str, turns: Sequence[Turn]
) -> tuple[type[Exception], int, str] | None:
    try:
        play(machine, configuration, turns)
    except Exception as error:  # noqa: BLE001 - told apart by type and place
        return type(error), _last_line(error.__traceback__), _gist(str(error))
    return None


def _gist(text: str) -> str:
    """What is wrong, without who it is wrong with: no brackets, no quotes, no numbers."""
    before = ""
    while text != before:
        before, text = text, re.sub(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|'[^']*'|\d+", "", text)
    return text.partition("\n")[0]


def _last_line(trace: TracebackType | None) -> int:
    line = 0
    while trace is not None:
        line, trace = trace.tb_lineno, trace.tb_next
    return line


def _word(value: object) -> str:
    if isinstance(value, list | tuple):
        words = "".join(f"{_word(each)}, " for each in value)
        return f"[{words}]" if isinstance(value, list) else f"({words})"
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def _pick(dice: random.Random) -> int:
    return dice.randrange(1000)


def _model(dice: random.Random) -> ModelId:
    return ModelId(dice.choice("abcd"))


def _worker(dice: random.Random) -> WorkerId:
    return WorkerId(dice.choice(["w1", "w2"]))


def _likely(dice: random.Random, chance: float) -> bool:
    return dice.random() < chance


def _arrival(dice: random.Random) -> Values:
    return {
        "model": _model(dice),
        "worker": _worker(dice),
        "streaming": _likely(dice, 0.5),
        "timeout": dice.choice([None, None, 4]),
        "hold": dice.choice([None, None, 0, 2]),
        "patience": dice.choice([None, None, None, 0, 3]),
        "conversation": dice.choice(["", "x", "y"]),
        "is_tracked": _likely(dice, 0.125),
    }


def _unload(dice: random.Random) -> Values:
    models = [_model(dice) for _ in range(dice.choice([0, 1, 1, 1, 2]))]
    return {"models": models, "drain": _likely(dice, 0.6)}


def _reading(dice: random.Random) -> Values:
    return {
        "foreign": dice.choice([0, 0, 3, 12]),
        "has_ceiling": _likely(dice, 0.5),
        "line": dice.choice([None, None, 0, 5]),
    }


_RULES: list[tuple[str, Callable[[random.Random], Values], float]] = [
    ("arrive", _arrival, 20),
    ("ask_again", lambda d: {"pick": _pick(d)}, 5),
    ("leave", lambda d: {"pick": _pick(d)}, 4),
    ("accept", lambda d: {"pick": _pick(d)}, 10),
    (
        "take_up_the_earlier_offer",
        lambda d: {"pick": _pick(d), "declines": _likely(d, 0.5)},
        2,
    ),
    ("decline", lambda d: {"pick": _pick(d)}, 3),
    (
        "finish",
        lambda d: {
            "pick": _pick(d),
            "served": _likely(d, 0.7),
            "outcome": d.choice(list(Outcome)),
        },
        10,
    ),
    (
        "finish_after_further_uses",
        lambda d: {
            "pick": _pick(d),
            "uses": [(d.choice(list(Outcome)), d.choice(["", "x", "y"])) for _ in range(2)],
            "hold": d.choice([None, 0, 2]),
        },
        2,
    ),
    (
        "a_further_use_lasts",
        lambda d: {"pick": _pick(d), "conversation": d.choice(["", "x", "y"])},
        2,
    ),
    ("spawned", lambda d: {"pick": _pick(d)}, 3),
    ("ready", lambda d: {"pick": _pick(d), "slots": d.choice([None, 1, 3])}, 15),
    ("ended", lambda d: {"pick": _pick(d), "failed": _likely(d, 0.15)}, 10),
    (
        "old_news",
        lambda d: {"pick": _pick(d), "word": d.choice(["ready", "stopped", "failed"])},
        2,
    ),
    ("unload", _unload, 3),
    ("load", lambda d: {"model": _model(d)}, 4),
    ("withdraw", lambda d: {"pick": _pick(d)}, 2),
    ("fall_silent", lambda d: {"worker": _worker(d), "is_so": True}, 1),
    ("greet_again", lambda d: {"worker": _worker(d)}, 1),
    ("lose", lambda d: {"worker": _worker(d), "is_so": True}, 0.3),
    ("time_passes", lambda d: {"by": d.choice([0.1, 1.0, 6.0, 40.0])}, 5),
    ("reload", lambda d: {"name": d.choice(sorted(SPECS)), "is_so": True}, 0.7),
    ("take_a_lease", lambda d: {"model": _model(d), "ttl": d.choice([2, 30])}, 3),
    ("renew_a_lease", lambda d: {"pick": _pick(d), "ttl": d.choice([2, 30])}, 1),
    ("release_a_lease", lambda d: {"pick": _pick(d)}, 3),
    (
        "pin",
        lambda d: {"model": _model(d), "is_pinned": _likely(d, 0.3), "is_so": True},
        1,
    ),
    ("drain_the_box", lambda d: {"is_draining": _likely(d, 0.3), "is_so": True}, 0.5),
    ("read_the_card", _reading, 3),
    ("read_what_was_asked_for", lambda _: {}, 5),
    ("lose_sight_of_the_card", lambda _: {"is_so": True}, 0.7),
    ("give_memory_back", lambda d: {"pick": _pick(d), "is_whole": _likely(d, 0.7)}, 4),
    ("measure", lambda d: {"pick": _pick(d), "is_so": True}, 0.5),
    ("shut_down", lambda _: {"is_so": True}, 0.2),
]
"""Rule, what it is given, weight."""
