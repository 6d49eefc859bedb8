"""What is wrong with a configuration: collected whole, then said one line each, in the order of the file."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from qmsup.errors import key_text, quoted

Path = tuple[str | int, ...]
"""Where in the document: keys, and positions in lists (from 0)."""

_SHOWN = 60
_COMPARED = 500
MOST = 200
"""Problems that are told at once."""
_OF_A_KEY = frozenset({"key", "name", "models", "admin"})
_SECRET = frozenset({"apiKeys", "apiKey", "env", "cmd", "cmdStop", "macros"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to mend.

    Attributes:
        text: what is wrong and what to do, without the key.
        path: the key; empty = the file as a whole.
        line: from 1; None = the line of the key, or of the nearest key around it.
        column: from 1, for what is no YAML at all.
    """

    text: str
    path: Path = ()
    line: int | None = None
    column: int | None = None


class TooManyProblemsError(Exception):
    """There is no use in looking further; what was found is told."""


@dataclass(slots=True)
class Problems:
    """Gathers problems while a document is read."""

    found: list[Problem] = field(default_factory=list)
    remarks: list[Problem] = field(default_factory=list)
    _wrong: set[Path] = field(default_factory=set)
    _around: set[Path] = field(default_factory=set)

    def add(self, path: Path, text: str, *, line: int | None = None) -> None:
        """Note one.

        Raises:
            TooManyProblemsError: it is one too many.
        """
        self.found.append(Problem(path=path, text=text, line=line))
        if path:
            self._wrong.add(path)
            self._around.update(path[:n] for n in range(1, len(path) + 1))
        if len(self.found) >= MOST:
            raise TooManyProblemsError

    def remark(self, path: Path, text: str) -> None:
        """Note what is no mistake, but should be known."""
        if len(self.remarks) < MOST:
            self.remarks.append(Problem(path=path, text=text))

    def told(self, name: str, lines: Mapping[Path, int]) -> tuple[str, ...]:
        """Every remark as `FILE:LINE: KEY: TEXT`, by line."""
        placed = [(line_of(remark.path, lines), remark) for remark in self.remarks]
        placed.sort(key=lambda pair: pair[0] or 0)
        return tuple(_line(name, remark, line) for line, remark in placed)

    def follow(self, path: Path, text: str) -> None:
        """Note one that may only follow from another: where something is wrong already, it is left unsaid."""
        if not self.touch(path):
            self.add(path, text)

    def touch(self, path: Path) -> bool:
        """Whether something at this key, around it or below it is wrong already: what follows from it stays unsaid."""
        return path in self._around or any(path[:n] in self._wrong for n in range(1, len(path) + 1))

    def lines(self, name: str, lines: Mapping[Path, int]) -> tuple[str, ...]:
        """Every problem as `FILE:LINE: KEY: TEXT`, by line; one inside a key that is wrong as a whole is left out."""
        told: dict[str, int] = {}
        for problem in self.found:
            if any(problem.path[:n] in self._wrong for n in range(1, len(problem.path))):
                continue
            line = problem.line or line_of(problem.path, lines)
            told.setdefault(_line(name, problem, line), line or 0)
        end = (f"{name}: and more; these are the first {MOST}",) if len(self.found) >= MOST else ()
        return (*sorted(told, key=lambda text: told[text]), *end)


def line_of(path: Path, lines: Mapping[Path, int]) -> int | None:
    """The line of a key, else of the nearest one around it."""
    for length in range(len(path), 0, -1):
        if (line := lines.get(path[:length])) is not None:
            return line
    return None


def _line(name: str, problem: Problem, line: int | None) -> str:
    place = [name, line, problem.column if problem.line else None]
    head = ":".join(str(part) for part in place if part is not None)
    key = f"{key_path(problem.path)}: " if problem.path else ""
    return f"{head}: {key}{problem.text}"


def key_path(path: Path) -> str:
    """`models.chat.estVramGB`, `env[0]`; a key that would not read back is quoted. Keys inside secrets are not told."""
    told = ""
    for depth, part in enumerate(path):
        if isinstance(part, int):
            told += f"[{part}]"
            continue
        if _may_be_secret(path, depth):
            part = "…"  # noqa: PLW2901 - somebody wrote keys as a mapping
        told += f".{key_text(part)}" if told else key_text(part)
    return told


def _may_be_secret(path: Path, depth: int) -> bool:
    if depth and path[depth - 1] == "apiKeys":
        return True
    is_in_entry = depth > 1 and path[depth - 2] == "apiKeys" and isinstance(path[depth - 1], int)
    return is_in_entry and path[depth] not in _OF_A_KEY


def shown(path: Path, value: object) -> str:
    """`, not "24GB"`: the value as the operator wrote it; nothing where it may be a secret or is not a plain value."""
    if any(part in _SECRET for part in path):
        return ""
    match value:
        case bool():
            return f", not {str(value).lower()}"
        case int() | float():
            return f", not {getattr(value, 'text', value)!s:.{_SHOWN}}"
        case str() if value:
            short = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
            return f", not {quoted(short)}"
        case _:
            return ""


_MEANT = {"command": "cmd"}
"""What looks more like another key than like the one that is meant."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean estVramGB?`, or nothing. Case and underscores do not count: `est_vram_gb` is near."""
    by_shape = {_shape(k): k for k in islice(known, _COMPARED)}
    shape = _shape(word[:_SHOWN])
    near = difflib.get_close_matches(shape, by_shape, n=1, cutoff=0.6)
    if _MEANT.get(shape) in by_shape:
        near = [_MEANT[shape]]
    return f"; did you mean {key_text(by_shape[near[0]])}?" if near else ""


def _shape(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")
