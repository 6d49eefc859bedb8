"""Regular expressions that an operator writes, and that look at what others write: a program's log, a client's path.

Python tries all ways in which an expression may fit, and nothing else runs in the process meanwhile. With a repetition
in a repetition, such as `(a+)+`, or a repeated choice of what begins alike, such as `(a|aa)+`, a line of 40 letters has
more ways than there is time. Other expressions may take long on long lines, but end (processes/log_watch.py).
"""

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

_SIGN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""An escaped character or a character class: nothing in it repeats."""
_INNERMOST = re.compile(r"\((?:\?[^()]*?[:>=!])?([^()]*)\)([*+]|\{\d*,\}|\{(?:\d+,)?\d{2,}\})?")
_REPEATS = re.compile(r"[*+]|\{\d*,\}")
_ATOM = re.compile(r"(.)(\?|\{\d+(?:,\d+)?\})?\??", re.DOTALL)
_NO_WIDTH = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\Z"})
_FIRST_SIGN = 0xE000
"""From here on, in Unicode's private area, a character stands for the sign of that number."""
_ANY = "\uf8ff"
"""Stands for a group. It may begin with anything."""
_UNCLEAR = "\uf8fe"
"""Stands for a group that fits the same text in several ways."""
_REPEATING = f"{_ANY}*"
_MOST_VARIANTS = 200
_MOST_TIMES = 32
_LETTERS = frozenset(chr(number).lower() for number in range(0x250))

_Variant = tuple[frozenset[str], ...]
"""What one way through a group fits, letter by letter."""


def problem_with(pattern: str) -> str | None:
    """Why an expression cannot be used; None when it can."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no regular expression: {error}"
    return _Reading(pattern).problem()


class _Reading:
    """An expression whose groups are looked at from the inside out."""

    def __init__(self, pattern: str) -> None:
        self._signs: list[str] = []
        self._flat = _SIGN.sub(self._note, pattern)

    def problem(self) -> str | None:
        flat = self._flat
        while (group := _INNERMOST.search(flat)) is not None:
            inside, repeated = group.groups()
            repeats = _REPEATS.search(inside) is not None
            if repeats and repeated:
                return (
                    "repeats what repeats itself, which can take for ever: leave out one of the two,"
                    " as in a+ for (a+)+"
                )
            is_unclear = _UNCLEAR in inside or (not repeats and self._is_unclear(inside))
            if is_unclear and repeated:
                return (
                    "repeats what fits in several ways, which can take for ever: have each choice begin otherwise,"
                    " as in a+ for (a|aa)+"
                )
            kept = _REPEATING if repeats or repeated else _UNCLEAR if is_unclear else _ANY
            flat = flat[: group.start()] + kept + flat[group.end() :]
        return None

    def _note(self, sign: re.Match[str]) -> str:
        self._signs.append(sign[0])
        return chr(_FIRST_SIGN + len(self._signs) - 1)

    def _is_unclear(self, inside: str) -> bool:
        """Whether one way through a group may be the beginning of another."""
        variants: list[_Variant] = []
        for branch in inside.split("|"):
            variants += itertools.islice(self._variants(branch), _MOST_VARIANTS + 1)
        if len(variants) > _MOST_VARIANTS:
            return True
        return any(_may_begin(one, other) for one, other in itertools.combinations(variants, 2))

    def _variants(self, branch: str) -> Iterator[_Variant]:
        """The ways through a branch, an optional atom taken and left."""
        choices = map(self._choices, _ATOM.finditer(branch))
        return (tuple(itertools.chain(*taken)) for taken in itertools.product(*choices))

    def _choices(self, found: re.Match[str]) -> list[_Variant]:
        atom, times = found.groups()
        sign = self._signs[ord(atom) - _FIRST_SIGN] if self._is_sign(atom) else atom
        if sign in _NO_WIDTH:
            return [()]
        letters = _letters_of(sign)
        least, most = _bounds_of(times)
        return [(letters,) * count for count in range(least, most + 1)]

    def _is_sign(self, atom: str) -> bool:
        return 0 <= ord(atom) - _FIRST_SIGN < len(self._signs)


def _bounds_of(times: str | None) -> tuple[int, int]:
    if times is None:
        return 1, 1
    if times == "?":
        return 0, 1
    least, _, most = times.strip("{}").partition(",")
    return min(int(least), _MOST_TIMES), min(int(most or least), _MOST_TIMES)


@lru_cache(maxsize=1024)
def _letters_of(sign: str) -> frozenset[str]:
    """What a sign or a letter fits, of the letters that are tried; whether it is small or large is no matter."""
    if sign in {_ANY, _UNCLEAR, "."}:
        return _LETTERS
    if len(sign) == 1:
        return frozenset({sign.lower()})
    try:
        fits = re.compile(sign, re.IGNORECASE).fullmatch
    except re.error:  # a reference to a group
        return _LETTERS
    return frozenset(letter for letter in _LETTERS if fits(letter))


def _may_begin(one: _Variant, other: _Variant) -> bool:
    """Whether the shorter of the two may be the beginning of the other."""
    return all(not mine.isdisjoint(theirs) for mine, theirs in zip(one, other, strict=False))
