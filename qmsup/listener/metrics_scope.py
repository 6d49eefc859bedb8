"""What of a box's metrics a client of one port is shown: what is about models, ports and hosts that it knows of.

The scheduler makes one text for everybody, in Prometheus' format. Whole samples are left out of it; what has none of
these labels is of the box, and stays.
"""

import re
from collections.abc import Container, Mapping

_LABEL = re.compile(r'(?:\{|,)(model|listener|host)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

Scope = Mapping[str, Container[object]]
"""By label, what may be seen; a label that is not named may hold anything."""


def within(text: str, scope: Scope) -> str:
    """The samples that say nothing beyond the scope, and what is said of each metric."""
    return "".join(line for line in text.splitlines(keepends=True) if _is_within(line, scope))


def _is_within(line: str, scope: Scope) -> bool:
    if line.startswith("#"):
        return True
    return all(
        _unescaped(value) in scope[label] for label, value in _LABEL.findall(line) if label in scope
    )


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
