"""What a set of the matrix says: names joined by `&` and `|`, parentheses, and `+other` for what another set says."""

import re
from dataclasses import dataclass

from qmsup.errors import key_text

_NAME = re.compile(r"[^\s&|()+]+")
_TOKEN = re.compile(r"\+?[^\s&|()+]+|[&|()+]")
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Word:
    """A name: a set's if it was written with a `+`, else a model's."""

    text: str
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """Two parts or more, joined by `&` (together) or by `|` (one of them)."""

    are_together: bool
    parts: tuple["Tree", ...]


Tree = Word | Joined


def is_name(text: str) -> bool:
    """Whether a set could name this."""
    return _NAME.fullmatch(text) is not None


def parse(text: str) -> Tree:
    """The expression in a text; `&` binds tighter than `|`.

    Raises:
        ValueError: what is wrong with it and what to do.
    """
    reader = _Reader(_TOKEN.findall(text))
    if reader.peek() is None:
        raise ValueError("names no model; write for example `(chat | code) & embed`")
    tree = reader.choice(0)
    if reader.peek() == ")":
        raise ValueError("a ) closes nothing; remove it")
    if reader.peek() is not None:
        raise ValueError(reader.unjoined())
    return tree


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str | None:
        """The token in turn; None at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def unjoined(self) -> str:
        """What is wrong when something else follows where an expression could end."""
        before, after = (key_text(self._tokens[at]) for at in (self._at - 1, self._at))
        return f"nothing joins {before} and {after}; put & (both) or | (one of them) between"

    def choice(self, depth: int) -> Tree:
        """Parts with `|` between."""
        parts = [self._union(depth)]
        while self._takes("|"):
            parts.append(self._union(depth))
        return parts[0] if len(parts) == 1 else Joined(are_together=False, parts=tuple(parts))

    def _union(self, depth: int) -> Tree:
        parts = [self._atom(depth)]
        while self._takes("&"):
            parts.append(self._atom(depth))
        return parts[0] if len(parts) == 1 else Joined(are_together=True, parts=tuple(parts))

    def _atom(self, depth: int) -> Tree:
        mark = self.peek()
        if mark is None or mark in ("&", "|", ")"):
            where = "at the end" if mark is None else f"before {mark}"
            raise ValueError(f"a name is missing {where}; write one, or remove what joins it")
        self._at += 1
        if mark == "(":
            return self._inner(depth + 1)
        if mark == "+":
            raise ValueError("a + stands alone; write +NAME with the name of another set")
        return Word(mark.removeprefix("+"), is_set=mark.startswith("+"))

    def _inner(self, depth: int) -> Tree:
        if depth > _MAX_DEPTH:
            raise ValueError(
                f"parentheses are nested more than {_MAX_DEPTH} deep; write it flatter"
            )
        tree = self.choice(depth)
        if self._takes(")"):
            return tree
        raise ValueError("a ( is never closed; add a )" if self.peek() is None else self.unjoined())

    def _takes(self, mark: str) -> bool:
        if self.peek() != mark:
            return False
        self._at += 1
        return True
