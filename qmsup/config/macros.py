"""`${NAME}` in the texts of a configuration.

A macro may use others, in any order. A model's own `macros` lie over the top level's, also inside those. `${PORT}`
stays as it is until a start picks a port; `${env.X}` is read once, here, and what it holds is not looked into again.
A text that is one reference and nothing else takes the macro's type, so that `concurrencyLimit: ${slots}` is a number.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from qmsup.config.commands import without_comments
from qmsup.config.document import Document, Value, WrittenFloat, WrittenInt, plain
from qmsup.config.problems import Path, Problems, TooManyProblemsError, did_you_mean
from qmsup.config.shape import SECTIONS, place_of
from qmsup.errors import key_text

REFERENCE = re.compile(r"\$\{([A-Za-z0-9_.-]+)\}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
_MODEL_ID, _PORT, _PID = "MODEL_ID", "PORT", "PID"
_RESERVED = frozenset({_MODEL_ID, _PORT, _PID})
_PORT_KEYS = frozenset({"cmd", "env", "proxy", "cmdStop"})
_NAMED = ("filters", "setParamsByID")
"""Where in a model keys are names, and may hold macros."""
_MAX_TEXT = 64 * 1024
_MAX_TOTAL = 8 * 1024 * 1024
_MAX_DEPTH = 32
_MOST_WRONG = 20
_LONG = f"grows beyond {_MAX_TEXT // 1024} KiB by its macros; shorten them"


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Why a text cannot be expanded. `culprits` are the macros whose own text is at fault; none = the text itself."""

    culprits: tuple[str, ...]
    text: str


class _TooLargeError(Exception):
    """The budget for all macros together is spent."""


@dataclass(slots=True)
class _Budget:
    left: int = _MAX_TOTAL


@dataclass(slots=True)
class _Scope:
    """The names that mean something in one place.

    Attributes:
        macros: name → value as written.
        model: what `${MODEL_ID}` is; None = not inside a model.
        told: macros whose fault was told where they are defined.
    """

    macros: Mapping[str, Value]
    env: Mapping[str, str]
    budget: _Budget
    model: str | None = None
    told: set[str] = field(default_factory=set)
    _known: dict[str, tuple[str, tuple[_Wrong, ...]]] = field(default_factory=dict)

    def expand(self, text: str, trail: tuple[str, ...] = ()) -> tuple[str, tuple[_Wrong, ...]]:
        """The text with every reference replaced, and what is wrong with it."""
        own = trail[-1:]
        parts: list[str] = []
        wrong: dict[_Wrong, None] = {}
        length = end = 0
        for found in REFERENCE.finditer(text):
            value, inner = self._value(found[1], trail)
            wrong.update(dict.fromkeys(inner))
            parts += [text[end : found.start()], value]
            end = found.end()
            length += len(value)
            if length > _MAX_TEXT:
                return "", (_Wrong(own, _LONG),)
            if len(wrong) >= _MOST_WRONG:
                break
        self.budget.left -= length + len(text)
        if self.budget.left < 0:
            raise _TooLargeError
        return "".join([*parts, text[end:]]), tuple(wrong)

    def typed(self, text: str) -> Value:
        """What a text that is one single reference stands for, with its type. Only for one that expands well."""
        found = REFERENCE.fullmatch(text)
        if found is None or found[1] in _RESERVED:
            return self.expand(text)[0]
        if found[1].startswith("env."):
            said = self.env[found[1].removeprefix("env.")]
            number = plain(said)
            return number if isinstance(number, WrittenInt | WrittenFloat) else said
        value = self.macros[found[1]]
        return self.typed(value) if isinstance(value, str) else value

    def _value(self, name: str, trail: tuple[str, ...]) -> tuple[str, tuple[_Wrong, ...]]:
        own = trail[-1:]
        if name in trail:
            circle = trail[trail.index(name) :]
            told = " → ".join([*circle, name])
            return "", (_Wrong(circle, f"refers to itself ({told}); break the circle"),)
        if len(trail) >= _MAX_DEPTH:
            return "", (_Wrong(own, f"macros are nested more than {_MAX_DEPTH} deep"),)
        if name in _RESERVED or name.startswith("env."):
            return self._built_in(name, own)
        if name not in self.macros:
            is_told = name in self.told
            return "", (_Wrong((name,), "") if is_told else _Wrong(own, self._unknown(name)),)
        if name not in self._known:
            self._known[name] = self.expand(_written(self.macros[name]), (*trail, name))
        return self._known[name]

    def _built_in(self, name: str, own: tuple[str, ...]) -> tuple[str, tuple[_Wrong, ...]]:
        if name == _MODEL_ID and self.model is None:
            return "", (_Wrong(own, "${MODEL_ID} is known inside a model only"),)
        if name == _MODEL_ID:
            return self.model or "", ()
        if name in _RESERVED:
            return f"${{{name}}}", ()
        return self._from_env(name.removeprefix("env."), own)

    def _from_env(self, name: str, own: tuple[str, ...]) -> tuple[str, tuple[_Wrong, ...]]:
        value = self.env.get(name)
        if value is None:
            text = f"${{env.{name}}}: the environment variable {name} is not set; set it where qmsup starts"
        elif not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            text = f"${{env.{name}}}: the environment variable {name} is not UTF-8 text; change it"
        else:
            return value, ()
        return "", (_Wrong(own, text),)

    def _unknown(self, name: str) -> str:
        hint = did_you_mean(name, [*self.macros, _MODEL_ID, _PORT])
        return f"unknown macro ${{{key_text(name)}}}{hint or '; define it under macros'}"


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(getattr(value, "text", value))


def expand(document: Document, env: Mapping[str, str]) -> Value:
    """The document with its macros replaced. A text that cannot be stays, and is noted in `document.problems`.

    Raises:
        TooManyProblemsError: there is no use in going on.
    """
    root = document.root
    if not isinstance(root, dict):
        return root
    try:
        return _Expansion(document.problems, root, env).all()
    except _TooLargeError:
        document.problems.add((), "its macros grow too large; use fewer, or shorter ones")
        raise TooManyProblemsError from None


class _Expansion:
    def __init__(self, problems: Problems, root: dict[str, Value], env: Mapping[str, str]) -> None:
        self._problems = problems
        self._root = root
        self._env = env
        self._budget = _Budget()
        models = root.get("models")
        self._models: dict[str, Value] = models if isinstance(models, dict) else {}

    def all(self) -> dict[str, Value]:
        top, bad = self._defined(self._root.get("macros"), ("macros",))
        inner = {
            name
            for model in self._models.values()
            if isinstance(model, dict) and isinstance(own := model.get("macros"), dict)
            for name in own
        }
        # A macro may lean on one that only models define; a model that does not is told so where it uses it.
        elsewhere: dict[str, Value] = dict.fromkeys(inner, "")
        known = ChainMap(top, elsewhere)
        told = self._check(_Scope(known, self._env, self._budget, "", bad), top, ("macros",))
        scope = _Scope(top, self._env, self._budget, None, told)
        rest = {key: value for key, value in self._root.items() if key != "models"}
        tree = dict(self._entries(rest, (), scope))
        if "models" in self._root:
            tree["models"] = self._models_section(self._root["models"], top, told)
        return tree

    def _models_section(self, value: Value, top: dict[str, Value], told: set[str]) -> Value:
        if not isinstance(value, dict):
            return value
        return {name: self._model(model, name, top, told) for name, model in value.items()}

    def _model(self, model: Value, name: str, top: dict[str, Value], told: set[str]) -> Value:
        path: Path = ("models", name)
        if not isinstance(model, dict):
            return model
        own, bad = self._defined(model.get("macros"), (*path, "macros"))
        scope = _Scope(ChainMap(own, top), self._env, self._budget, name, told | bad)
        self._check(scope, own, (*path, "macros"))
        return self._tree(model, path, scope)

    def _defined(self, section: Value, path: Path) -> tuple[dict[str, Value], set[str]]:
        """The usable definitions of a `macros` section, and the names of the others, which are noted."""
        if section is None:
            return {}, set()
        if not isinstance(section, dict):
            self._problems.add(path, "must be a mapping of name: text")
            return {}, set()
        good: dict[str, Value] = {}
        for name, value in section.items():
            if name in _RESERVED:
                self._problems.add((*path, name), "this name is qmsup's own; choose another")
            elif not _NAME.fullmatch(name):
                text = "a macro's name is 1 to 63 letters, digits, - or _; rename it"
                self._problems.add((*path, name), text)
            elif value is None or isinstance(value, list | dict):
                self._problems.add((*path, name), "a macro is a text, a number, true or false")
            else:
                good[name] = value
        return good, set(section) - set(good)

    def _check(self, scope: _Scope, own: Mapping[str, Value], path: Path) -> set[str]:
        """Note what is wrong inside definitions, once and where it stands."""
        for name in own:
            found: set[str] = set()
            for fault in scope.expand(f"${{{name}}}")[1]:
                if name in fault.culprits and scope.told.isdisjoint(fault.culprits):
                    self._problems.add((*path, name), fault.text)
                    found.add(name)
            scope.told |= found
        return scope.told

    def _tree(self, value: Value, path: Path, scope: _Scope) -> Value:
        match value:
            case dict():
                return dict(self._entries(value, path, scope))
            case list():
                return [self._tree(item, (*path, at), scope) for at, item in enumerate(value)]
            case str() if "${" in value:
                return self._text(value, path, scope)
            case _:
                return value

    def _entries(
        self, section: dict[str, Value], path: Path, scope: _Scope
    ) -> Iterator[tuple[str, Value]]:
        is_section = place_of(path) in SECTIONS
        for key, value in section.items():
            is_untouched = is_section and (key == "macros" or key.startswith("x-"))
            name = self._name(key, scope) if path[2:] == _NAMED else key
            yield name, value if is_untouched else self._tree(value, (*path, key), scope)

    def _name(self, written: str, scope: _Scope) -> str:
        """What a name among keys comes to; one that cannot be expanded is refused where names are looked at."""
        name, wrong = scope.expand(written)
        return written if wrong else name

    def _text(self, text: str, path: Path, scope: _Scope) -> Value:
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        if key in ("cmd", "cmdStop"):
            text = without_comments(text)
        expanded, wrong = scope.expand(text)
        for one in wrong:
            if scope.told.isdisjoint(one.culprits):
                at = f"by ${{{one.culprits[0]}}}: " if one.culprits else ""
                self._problems.add(path, at + one.text)
        if wrong:
            return text
        if "${PORT}" in expanded and key not in _PORT_KEYS and "metadata" not in path[2:3]:
            self._problems.add(path, "${PORT} is known in cmd, env and proxy only")
            return text
        if "${PID}" in expanded and key != "cmdStop":
            self._problems.add(path, "${PID} is known in cmdStop only")
            return text
        return scope.typed(text) if REFERENCE.fullmatch(text) else expanded
