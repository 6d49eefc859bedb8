"""Files of llama-swap: what stands elsewhere there, or may stand there and not here, before anything is examined."""

from collections.abc import Iterator

from qmsup.config.document import Document, Value
from qmsup.config.foreign import ForeignKeys
from qmsup.config.problems import Path
from qmsup.config.routing import unfold
from qmsup.config.shape import keys_of
from qmsup.config.stand_ins import make_aliases
from qmsup.errors import key_text

_MARKS = frozenset(keys_of(ForeignKeys))


def bring_over(document: Document) -> None:
    """Bring everything to its place here.

    A file with any key that is llama-swap's alone is taken for one of its own. Names of models that there are not are
    left out of it with a remark: llama-swap lets them stand, and its example is full of them.
    """
    root = document.root
    is_theirs = isinstance(root, dict) and not _MARKS.isdisjoint(root)
    unfold(document)
    make_aliases(document)
    if is_theirs and isinstance(root, dict) and root.get("models"):
        _Names(document, root).leave_out_strangers()


class _Names:
    def __init__(self, document: Document, root: dict[str, Value]) -> None:
        self._problems = document.problems
        self._root = root
        models = root.get("models")
        self._ids = frozenset(models if isinstance(models, dict) else ())
        self._names = self._ids.union(_aliases(models))

    def leave_out_strangers(self) -> None:
        """Of groups, of what is loaded at the start, and of priorities."""
        groups = self._root.get("groups")
        for group, section in groups.items() if isinstance(groups, dict) else ():
            # Another name than its own is none of a model's there.
            self._leave_out(section, "members", ("groups", group, "members"), self._ids)
        hooks = self._root.get("hooks")
        on_startup = hooks.get("on_startup") if isinstance(hooks, dict) else None
        self._leave_out(on_startup, "preload", ("hooks", "on_startup", "preload"), self._names)
        scheduler = self._root.get("scheduler")
        priority = scheduler.get("priority") if isinstance(scheduler, dict) else None
        if isinstance(scheduler, dict) and isinstance(priority, dict):
            path: Path = ("scheduler", "priority")
            scheduler["priority"] = {
                name: value
                for name, value in priority.items()
                if not self._is_stranger(name, (*path, name), self._names)
            }

    def _leave_out(self, section: Value, key: str, path: Path, known: frozenset[str]) -> None:
        names = section.get(key) if isinstance(section, dict) else None
        if isinstance(section, dict) and isinstance(names, list):
            told = enumerate(names)
            section[key] = [n for at, n in told if not self._is_stranger(n, (*path, at), known)]

    def _is_stranger(self, name: Value, path: Path, known: frozenset[str]) -> bool:
        # A name that a macro tells is looked at later, like any other.
        if not isinstance(name, str) or name in known or "${" in name:
            return False
        self._problems.remark(path, f"there is no model {key_text(name)}: it is left out")
        return True


def _aliases(models: Value) -> Iterator[str]:
    for section in models.values() if isinstance(models, dict) else ():
        aliases = section.get("aliases") if isinstance(section, dict) else None
        for alias in aliases if isinstance(aliases, list) else ():
            yield str(alias.get("id") if isinstance(alias, dict) else alias)
