"""`groups:`, `listeners:` and `scheduler:`: what they mean together with the models they name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from qmsup.config.addresses import PORT, clash, parse_bind
from qmsup.config.problems import Path, Problems, did_you_mean
from qmsup.config.shape import KeySection, ListenerSection, SchedulerSection, Shape
from qmsup.errors import key_text
from qmsup.ids import ListenerName, ModelId
from qmsup.spec import (
    GroupSpec,
    HoldOn,
    KeySpec,
    ListenerSpec,
    ModelSpec,
    Pool,
    SchedulerSpec,
)
from qmsup.units import seconds_from_ms

_DEFAULT_GROUP = "(default)"
_DIGEST = "sha256:"
_HEX = re.compile(r"[0-9a-f]{64}")
_LISTENER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Names:
    """The model names of a file, as written: also those of models that are wrong in some other way."""

    def __init__(self, written: Iterable[str], shape: Shape, problems: Problems) -> None:
        self._ids = frozenset(written)
        self._aliases = {alias: name for name, m in shape.models.items() for alias in m.aliases}
        self._elsewhere = {model for peer in shape.peers.values() for model in peer.models}
        self._elsewhere.update(model for host in shape.hosts.values() for model in host.models)
        # What a host has is known for sure only once it has been asked.
        self._may_be_any = any(not host.models for host in shape.hosts.values())
        self._problems = problems

    def check(self, name: str, path: Path) -> None:
        """Note a name that is no model's."""
        if not self.is_model(name):
            self._problems.follow(path, self.unknown(name))

    def model_called(self, name: str, path: Path) -> ModelId:
        """The model of this name or alias; one that there is not is noted."""
        model = name if name in self._ids else self._aliases.get(name, name)
        self.check(model, path)
        return ModelId(model)

    def served_called(self, name: str, path: Path) -> ModelId:
        """The same, where models of peers and hosts count, too."""
        if name in self._ids or name in self._aliases:
            return self.model_called(name, path)
        if name not in self._elsewhere and not self._may_be_any:
            self.check(name, path)
        return ModelId(name)

    def is_model(self, name: str) -> bool:
        """Whether a model is called so. With no model at all there is nothing to compare with."""
        return name in self._ids or not self._ids

    def unknown(self, name: str, *, short: Iterable[str] = ()) -> str:
        """What to tell about a name that is no model's, nor one of the short names that would do here."""
        if name in self._aliases:
            model = key_text(self._aliases[name])
            return f"{key_text(name)} is an alias; write the model's name, {model}"
        hint = did_you_mean(name, [*short, *self._ids])
        return f"there is no model {key_text(name)}{hint or '; add it under models, or remove it here'}"


def resolve_preload(shape: Shape, names: Names) -> tuple[ModelId, ...]:
    """The models to load at the start, each once."""
    written = enumerate(shape.hooks.on_startup.preload)
    found = (
        names.model_called(name, ("hooks", "on_startup", "preload", at)) for at, name in written
    )
    return tuple(dict.fromkeys(found))


def resolve_groups(shape: Shape, names: Names, problems: Problems) -> tuple[GroupSpec, ...]:
    """Every group, in the order of the file. A model is in one at most."""
    home: dict[str, str] = {}
    for group, section in shape.groups.items():
        if group == _DEFAULT_GROUP:
            text = "this name stands for the models in no group; choose another"
            problems.add(("groups", group), text)
        for at, member in enumerate(section.members):
            path: Path = ("groups", group, "members", at)
            if member in home:
                where = "this group" if home[member] == group else f"group {key_text(home[member])}"
                problems.follow(
                    path, f"model {key_text(member)} is in {where} already; a model is in one group"
                )
                continue
            home[member] = group
            names.check(member, path)
    return tuple(
        GroupSpec(
            id=group,
            members=tuple(ModelId(m) for m in section.members),
            swap=section.swap,
            exclusive=section.exclusive,
            persistent=section.persistent,
            pool=Pool(section.pool),
        )
        for group, section in shape.groups.items()
    )


def resolve_scheduler(section: SchedulerSection, names: Names) -> SchedulerSpec:
    """The scheduler's settings."""
    priority = {
        names.model_called(name, ("scheduler", "priority", name)): value
        for name, value in section.priority.items()
    }
    return SchedulerSpec(
        line_max=section.line_max,
        offer_timeout=seconds_from_ms(section.offer_timeout_ms),
        listener_grace=seconds_from_ms(section.listener_grace_ms),
        hold=seconds_from_ms(section.hold_ms),
        hold_on=HoldOn(section.hold_on),
        patience=seconds_from_ms(section.patience_ms),
        lend=seconds_from_ms(section.lend_ms),
        settle=seconds_from_ms(section.settle_ms),
        priority=priority,
    )


def resolve_listeners(
    shape: Shape, names: Names, problems: Problems
) -> dict[ListenerName, ListenerSpec]:
    """Every listener, in the order of the file; `main` with the defaults when none is written."""
    common = resolve_keys(shape.api_keys, ("apiKeys",), names, problems)
    sections: Mapping[str, ListenerSection] = shape.listeners or {"main": ListenerSection()}
    specs: dict[ListenerName, ListenerSpec] = {}
    for name, section in sections.items():
        path: Path = ("listeners", name)
        if not _LISTENER_NAME.fullmatch(name):
            text = "a listener's name is letters, digits, - _ or . (at most 64); rename it"
            problems.add(path, text)
        _check_shown(section.groups, (*path, "groups"), shape, problems)
        keys = common
        if section.api_keys is not None:
            keys = resolve_keys(section.api_keys, (*path, "apiKeys"), names, problems)
        host, port = _bind(section.bind, (*path, "bind"), specs, problems)
        specs[ListenerName(name)] = ListenerSpec(
            name=ListenerName(name),
            host=host,
            port=port,
            workers=section.workers,
            groups=None if section.groups is None else tuple(section.groups),
            api_keys=keys,
        )
    return specs


def resolve_keys(
    sections: Sequence[KeySection], path: Path, names: Names, problems: Problems
) -> tuple[KeySpec, ...]:
    """The keys of a port, each once, in the order of the file."""
    keys: dict[str, KeySpec] = {}
    for at, section in enumerate(sections):
        place: Path = (*path, at)
        if text := _wrong_in_key(section.key):
            problems.follow(place, text)
        models = None
        if section.models is not None:
            called = enumerate(section.models)
            models = frozenset(names.served_called(m, (*place, "models", n)) for n, m in called)
            if not models:
                text = "names no model; remove the line to allow every model"
                problems.follow((*place, "models"), text)
        key = KeySpec(
            key=section.key,
            name=section.name,
            models=models,
            admin=models is None if section.admin is None else section.admin,
        )
        if keys.setdefault(section.key, key) != key:
            problems.follow(place, "this key is given twice, and may different things; keep one")
    return tuple(keys.values())


def _wrong_in_key(key: str) -> str:
    if not key:
        return "a key is empty; write one or remove the entry"
    if not re.fullmatch(r"[!-~]+", key):  # it could not travel in a header
        return "a key is plain characters without blanks"
    if key.startswith(_DIGEST) and not _HEX.fullmatch(key.removeprefix(_DIGEST)):
        return "sha256: is followed by 64 digits and letters a to f: `printf %s KEY | sha256sum` makes them"
    return ""


def _check_shown(
    groups: Sequence[str] | None, path: Path, shape: Shape, problems: Problems
) -> None:
    if groups is None or (problems.touch(("groups",)) and not shape.groups):
        return
    if not groups:
        problems.follow(path, "names no group; remove the line to show every model")
    for at, group in enumerate(groups):
        if group not in shape.groups:
            hint = did_you_mean(group, shape.groups) or "; add it under groups, or remove it here"
            problems.follow((*path, at), f"there is no group {key_text(group)}{hint}")


def _bind(
    bind: str, path: Path, earlier: Mapping[ListenerName, ListenerSpec], problems: Problems
) -> tuple[str, int]:
    if problems.touch(path):
        return "", 0
    try:
        host, port = parse_bind(bind)
    except ValueError as error:
        problems.follow(path, str(error))
        return "", 0
    for other in earlier.values():
        if clash((host, port), (other.host, other.port)):
            text = f"listener {other.name} binds that port already; give each listener its own"
            problems.follow(path, text)
    return host, port


def check_loops(
    models: Mapping[ModelId, ModelSpec],
    listeners: Mapping[ListenerName, ListenerSpec],
    problems: Problems,
) -> None:
    """Note a model whose `proxy` is one of our own ports: requests would come back for ever."""
    for model in models.values():
        if PORT in model.upstream:
            continue
        parts = urlsplit(model.upstream)
        address = (parts.hostname or "", parts.port or 0)
        for listener in listeners.values():
            if clash(address, (listener.host, listener.port)):
                text = f"is where listener {listener.name} listens; write where the command listens"
                problems.follow(("models", model.id, "proxy"), text)
