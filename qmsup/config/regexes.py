"""Regular expressions that an operator writes, and that look at what others write: a program's log, a client's path.

Python tries all ways in which an expression may fit, and nothing else runs in the process meanwhile. With a repetition
in a repetition, such as `(a+)+`, a line of 40 letters has more ways than there is time.
"""

import re

_NO_SIGNS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Escaped characters and character classes: nothing in them repeats."""
_INNERMOST = re.compile(r"\((?:\?[^()]*?[:>=!])?([^()]*)\)([*+]|\{\d*,\})?")
_REPEATS = re.compile(r"[*+]|\{\d*,\}")
_REPEATING = "r*"
_OTHER = "x"


def problem_with(pattern: str) -> str | None:
    """Why an expression cannot be used; None when it can."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no regular expression: {error}"
    if _nests_repetitions(pattern):
        return "repeats what repeats itself, which can take for ever: leave out one of the two, as in a+ for (a+)+"
    return None


def _nests_repetitions(pattern: str) -> bool:
    flat = _NO_SIGNS.sub(_OTHER, pattern)
    while (group := _INNERMOST.search(flat)) is not None:
        inside, repeated = group.groups()
        repeats = _REPEATS.search(inside) is not None
        if repeats and repeated:
            return True
        kept = _REPEATING if repeats or repeated else _OTHER
        flat = flat[: group.start()] + kept + flat[group.end() :]
    return False
