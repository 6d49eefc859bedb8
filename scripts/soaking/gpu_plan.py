"""What happens around a card in one round: who asks for what, what a game takes, and when readings go missing."""

import random
from dataclasses import dataclass
from enum import StrEnum

ROUND_S = 5.0
_GAME_MIB = (2000, 15000)
_SHORT_S, _LONG_S = 0.3, 4.0


class Missing(StrEnum):
    """How a card cannot be read."""

    DRIVER = "the driver gone"
    CARD = "the card lost"
    LISTS = "no list of processes"
    SLOW = "answers after most of a second"
    HIDDEN = "what a child uses is not told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A game takes so much; it may play on after the round."""

    at_s: float
    until_s: float
    mib: int
    plays_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Readings go missing for a while."""

    at_s: float
    until_s: float
    how: Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A client asks for so many words of a model."""

    at_s: float
    model: str
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round."""

    game: Game | None
    gap: Gap | None
    wishes: tuple[Wish, ...]
    lag_ms: int
    """How long the driver keeps a dead process's memory."""


def plan(dice: random.Random, models: tuple[str, ...]) -> Plan:
    """Half of the rounds have a game, a third have a gap; the same dice plan the same."""
    return Plan(
        game=_game(dice) if dice.random() < 0.5 else None,
        gap=_gap(dice) if dice.random() < 0.35 else None,
        wishes=tuple(
            Wish(
                at_s=dice.uniform(0.0, ROUND_S),
                model=dice.choice(models),
                words=dice.choice([1, 8, 40]),
            )
            for _ in range(dice.randint(4, 14))
        ),
        lag_ms=dice.choice([0, 100, 300, 800]),
    )


def _game(dice: random.Random) -> Game:
    at_s = dice.uniform(0.0, ROUND_S)
    return Game(
        at_s=at_s,
        until_s=at_s + dice.uniform(_SHORT_S, _LONG_S),
        mib=dice.randint(*_GAME_MIB),
        plays_on=dice.random() < 0.5,
    )


def _gap(dice: random.Random) -> Gap:
    at_s = dice.uniform(0.0, ROUND_S)
    until_s = at_s + dice.uniform(_SHORT_S, _LONG_S)
    return Gap(at_s=at_s, until_s=until_s, how=dice.choice([*Missing]))
