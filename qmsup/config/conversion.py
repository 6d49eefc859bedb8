"""A llama-swap file as one of ours: what means nothing here is left out and told, what is elsewhere is moved.

It is made from the file as it is written, macros and all, so what the environment holds does not get into it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml
from typing_extensions import override

from qmsup.config.document import Document, Value, WrittenFloat, WrittenInt, plain, read
from qmsup.config.foreign import ForeignKeys
from qmsup.config.loading import parse_and_remark, text_of_file
from qmsup.config.macros import REFERENCE
from qmsup.config.shape import keys_of
from qmsup.config.theirs import bring_over

_WIDTH = 110
_HEADS: dict[str, str] = {
    "listeners": "Ports, each with a catalogue of its own.",
    "macros": "Used as ${NAME} below; ${env.NAME} is the environment's.",
    "apiKeys": "Keys that clients send; a mapping names one and says what it is for.",
    "models": (
        "Models. With vramBudgetGB at the top, and estVramGB in each, as many are loaded as fit;"
        " without them groups decide."
    ),
    "groups": "Which models make room for which.",
    "matrix": "Which models may run together.",
    "scheduler": "How requests wait.",
    "hooks": "What is done at the start.",
    "peers": "Other servers, and their models.",
}
"""The sections in the order in which they are written, and what is said of each; the others come first."""
_NO_LISTENERS = """\
# Ports, each with a catalogue of its own. llama-swap takes its port from its command line; this one is for this
# machine alone, "0.0.0.0:8080" is for all.
listeners:
  main: {bind: "127.0.0.1:8080"}
"""
_OF_A_MODEL = ("timeouts", "compat")


def converted(text: str, *, name: str, env: Mapping[str, str]) -> str:
    """One of our configurations that means the same.

    Args:
        text: the file.
        name: what errors and comments call it.
        env: for `${env.X}`; a variable that is not set is no error here.

    Raises:
        ConfigError: the file would not load.
    """
    document = read(text)
    _, remarks = parse_and_remark(text, name=name, env=_AnyEnvironment(env))
    bring_over(document)
    root = _kept(document)
    parts = [_preface(name, root, remarks)]
    if not root.get("listeners"):
        parts.append(_NO_LISTENERS)
    plain_keys = {key: value for key, value in root.items() if key not in _HEADS}
    if plain_keys:
        parts.append(_dumped(plain_keys))
    parts += [
        f"# {head}\n{_dumped({key: root[key]})}" for key, head in _HEADS.items() if root.get(key)
    ]
    return "\n".join(parts)


def import_file(path: Path, env: Mapping[str, str]) -> str:
    """The same for a file.

    Raises:
        ConfigError: it cannot be read, or would not load.
    """
    return converted(text_of_file(path), name=str(path), env=env)


class _AnyEnvironment(dict[str, str]):
    """An environment in which every variable is set."""

    @override
    def get(self, key: str, default: object = None) -> str:
        return super().get(key, "0")

    def __missing__(self, key: str) -> str:
        return "0"


def _preface(name: str, root: Value, remarks: tuple[str, ...]) -> str:
    lines = [f"# Made from {name} by `qmsup import`."]
    wanted = dict.fromkeys(_variables(root))
    if wanted:
        lines.append(f"# It needs these variables where qmsup starts: {', '.join(wanted)}.")
    if remarks:
        lines += ["#", "# What is left out, or means less here:"]
        lines += [f"# - line {remark.removeprefix(f'{name}:')}" for remark in remarks]
    return "\n".join(lines) + "\n"


def _variables(value: Value) -> Iterator[str]:
    """Those of the environment that it refers to."""
    match value:
        case str():
            names = (found[1] for found in REFERENCE.finditer(value))
            yield from (n.removeprefix("env.") for n in names if n.startswith("env."))
        case list():
            yield from (name for inner in value for name in _variables(inner))
        case dict():
            yield from (name for inner in value.values() for name in _variables(inner))
        case _:
            pass


def _kept(document: Document) -> dict[str, Value]:
    """What is written, without what has no meaning here."""
    root = document.root if isinstance(document.root, dict) else {}
    foreign = frozenset(keys_of(ForeignKeys)) - {"upstream"}  # that one is ours as well
    kept: dict[str, Value] = {
        key: value for key, value in root.items() if key not in foreign and value is not None
    }
    models = root.get("models")
    if isinstance(models, dict):
        kept["models"] = {name: _kept_of_model(model) for name, model in models.items()}
    return kept


def _kept_of_model(model: Value) -> Value:
    if not isinstance(model, dict):
        return model
    kept: dict[str, Value] = {
        k: v for k, v in model.items() if k not in _OF_A_MODEL and v is not None
    }
    aliases = kept.get("aliases")
    if isinstance(aliases, list):
        kept["aliases"] = [a.get("id") if isinstance(a, dict) else a for a in aliases]
    if kept.get("unloadTimeout") == 0:
        del kept["unloadTimeout"]
    filters = kept.get("filters")
    if isinstance(filters, dict) and "strip_params" in filters:
        kept["filters"] = {
            ("stripParams" if k == "strip_params" else k): v for k, v in filters.items()
        }
    return kept


class _Dumper(yaml.SafeDumper):
    """Writes values so that our reader reads the same."""

    @override
    def ignore_aliases(self, data: object) -> bool:
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif not isinstance(plain(text), str):  # 1e5 is a number to our reader, and none to PyYAML's
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _write_number(dumper: yaml.SafeDumper, number: WrittenInt | WrittenFloat) -> yaml.ScalarNode:
    kind = "int" if isinstance(number, WrittenInt) else "float"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", number.text)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(WrittenInt, _write_number)
_Dumper.add_representer(WrittenFloat, _write_number)


def _dumped(value: dict[str, Value]) -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, indent=2
    )
    return text
