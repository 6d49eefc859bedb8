"""`routing:`, where newer files of llama-swap have groups, matrix and priorities: brought to where they are kept here.

It is unfolded before anything else is looked at, so that errors and defaults are those of `groups`, `matrix` and
`scheduler.priority`.
"""

from qmsup.config.document import Document, Value
from qmsup.config.problems import Path, Problems, did_you_mean

_KNOWN: dict[Path, tuple[str, ...]] = {
    (): ("router", "scheduler"),
    ("router",): ("use", "settings"),
    ("router", "settings"): ("groups", "matrix"),
    ("scheduler",): ("use", "settings"),
    ("scheduler", "settings"): ("fifo",),
    ("scheduler", "settings", "fifo"): ("priority",),
}
_SETTINGS: Path = ("routing", "router", "settings")
_PRIORITY: Path = ("routing", "scheduler", "settings", "fifo", "priority")
_CHOICES = {("router", "use"): ("group", "matrix"), ("scheduler", "use"): ("fifo",)}


def unfold(document: Document) -> None:
    """Bring what is under `routing:` to its place at the top level, lines and all."""
    root = document.root
    if not isinstance(root, dict) or "routing" not in root:
        return
    routing = root.pop("routing")
    if _is_right(routing, document.problems):
        _Unfolding(document, root, routing).do()


def _is_right(routing: Value, problems: Problems) -> bool:
    before = len(problems.found)
    for path, known in _KNOWN.items():
        section = _at(routing, path)
        here: Path = ("routing", *path)
        if section is None:
            continue
        if not isinstance(section, dict):
            problems.add(here, "must be a mapping: keys with values, indented below it")
            return False
        for key in section:
            if key not in known and not key.startswith("x-"):
                told = did_you_mean(key, known) or f"; known are {', '.join(known)}"
                problems.add((*here, key), f"unknown key{told}")
    for path, choices in _CHOICES.items():
        said = _at(routing, path)
        if said not in (None, "", *choices):
            problems.add(("routing", *path), f"must be one of {', '.join(choices)}")
    return len(problems.found) == before


def _at(value: Value, path: Path) -> Value:
    for part in path:
        value = value.get(str(part)) if isinstance(value, dict) else None
    return value


class _Unfolding:
    def __init__(self, document: Document, root: dict[str, Value], routing: Value) -> None:
        self._document = document
        self._problems = document.problems
        self._root = root
        self._routing = routing

    def do(self) -> None:
        use = _at(self._routing, ("router", "use")) or "group"
        for section, wanted in (("groups", "group"), ("matrix", "matrix")):
            value = _at(self._routing, ("router", "settings", section))
            if value is None:
                continue
            if use == wanted:
                self._move((*_SETTINGS, section), (section,), value)
            else:
                text = f"is not in force: routing.router.use is {use}"
                self._problems.remark((*_SETTINGS, section), text)
        if use == "matrix" and _at(self._routing, ("router", "settings", "matrix")) is None:
            text = "is matrix, and there is none; write it under routing.router.settings.matrix"
            self._problems.add(("routing", "router", "use"), text)
        priority = _at(self._routing, _PRIORITY[1:])
        if priority is not None:
            self._move(_PRIORITY, ("scheduler", "priority"), priority)

    def _move(self, old: Path, new: Path, value: Value) -> None:
        home: Value = self._root
        for part in new[:-1]:
            if isinstance(home, dict):
                home = home.setdefault(str(part), {})
        if not isinstance(home, dict) or home.get(str(new[-1])):
            where = ".".join(map(str, new))
            self._problems.add(old, f"stands beside {where}; keep one of them")
            return
        home[str(new[-1])] = value
        lines = self._document.lines
        moved = {(*new, *p[len(old) :]): n for p, n in lines.items() if p[: len(old)] == old}
        lines.update(moved)
