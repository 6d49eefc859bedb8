"""What a new configuration changes, in the words of the file: the answer to `reload`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from qmsup.ids import ListenerName, ModelId
from qmsup.spec import ListenerSpec, Spec

_UNITS = {
    "vram_budget": "vramBudgetGB",
    "ram_budget": "ramBudgetGB",
    "oom_guard_reserve": "oomGuardReserveGB",
    "oom_guard_grace": "oomGuardGraceMs",
    "max_body": "maxBodyMB",
    "scheduler_grace": "schedulerGraceMs",
    "shutdown_drain": "shutdownDrainMs",
}
"""Fields of a Spec whose keys in the file have a unit; the others' differ in the way of writing alone."""
_ELSEWHERE = frozenset({"models", "listeners", "start_port"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """From one configuration to another.

    Attributes:
        added, removed, changed: models.
        settings: keys outside `models` with another value, all in force now.
        needs_restart: what counts only after a restart, a sentence each.
    """

    added: tuple[ModelId, ...]
    removed: tuple[ModelId, ...]
    changed: tuple[ModelId, ...]
    settings: tuple[str, ...]
    needs_restart: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line for a person."""
        parts = [
            f"{word} {', '.join(names)}"
            for word, names in (
                ("added", self.added),
                ("removed", self.removed),
                ("changed", self.changed),
                ("settings", self.settings),
            )
            if names
        ]
        said = "; ".join(parts) or "nothing changed"
        return f"reloaded: {said}"


def changes(old: Spec, new: Spec, *, first: Spec) -> Changes:
    """Compare what was in force with what is now.

    Args:
        old: until now.
        new: from now on.
        first: what the processes were started with: their sockets and their number are still of this one.
    """
    return Changes(
        added=tuple(model for model in new.models if model not in old.models),
        removed=tuple(model for model in old.models if model not in new.models),
        changed=tuple(
            model
            for model, spec in new.models.items()
            if model in old.models and old.models[model] != spec
        ),
        settings=(*_changed_sections(old, new), *_changed_listeners(old.listeners, new.listeners)),
        needs_restart=tuple(_to_restart(first, new)),
    )


def _changed_sections(old: Spec, new: Spec) -> list[str]:
    named = [field.name for field in fields(Spec) if field.name not in _ELSEWHERE]
    return [_key(name) for name in named if getattr(old, name) != getattr(new, name)]


def _key(field: str) -> str:
    first, *others = field.split("_")
    return _UNITS.get(field) or first + "".join(word.capitalize() for word in others)


def _changed_listeners(
    old: Mapping[ListenerName, ListenerSpec], new: Mapping[ListenerName, ListenerSpec]
) -> list[str]:
    return [
        f"listeners.{name}"
        for name, listener in new.items()
        if name in old
        and (old[name].groups, old[name].routes, old[name].api_keys)
        != (listener.groups, listener.routes, listener.api_keys)
    ]


def _to_restart(first: Spec, new: Spec) -> list[str]:
    said: list[str] = []
    for name, listener in new.listeners.items():
        known = first.listeners.get(name)
        if known is None:
            said.append(f"listeners.{name} is new: it needs a restart")
            continue
        if (known.host, known.port) != (listener.host, listener.port):
            said.append(f"listeners.{name}.bind needs a restart")
        if known.workers != listener.workers:
            said.append(f"listeners.{name}.workers needs a restart")
    said += [
        f"listeners.{name} is gone from the file: its port stays as it was until a restart"
        for name in first.listeners
        if name not in new.listeners
    ]
    if first.control != new.control:
        said.append("control needs a restart")
    if first.start_port != new.start_port:
        said.append("startPort needs a restart")
    return said
