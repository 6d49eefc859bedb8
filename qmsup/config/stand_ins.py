"""`selectors:` of llama-swap's files: names that stand for one of several models. Here each is an alias of the first.

It becomes one before anything else is looked at, so that what holds for aliases holds for it.
"""

from collections.abc import Iterator

from qmsup.config.document import Document, Value
from qmsup.config.problems import Path
from qmsup.errors import key_text

_CHOSEN = {"warm": "whichever is loaded", "spillover": "how busy they are"}


def make_aliases(document: Document) -> None:
    """Make every selector an alias of the first of its models that there is."""
    root = document.root
    selectors = root.get("selectors") if isinstance(root, dict) else None
    if not isinstance(root, dict) or not isinstance(selectors, dict):
        return
    models = root.get("models")
    owners = dict(_owners(models))
    for name, section in selectors.items():
        path: Path = ("selectors", name)
        if name in owners:
            text = f"{key_text(name)} is the name of a model already; rename one of them"
            document.problems.add(path, text)
            continue
        found = next((owners[t] for t in _targets(section) if t in owners), None)
        if found is None:
            text = "has no model of this box among its targets: nothing answers to its name"
            document.problems.remark(path, text)
            continue
        _add_alias(models, found, name, document)
        strategy = section.get("strategy") if isinstance(section, dict) else None
        chosen = _CHOSEN.get(strategy) if isinstance(strategy, str) else None
        told = f", without looking at {chosen}" if chosen else ""
        text = f"is another name of model {key_text(found)}, its first target here{told}"
        document.problems.remark(path, text)


def _owners(models: Value) -> Iterator[tuple[str, str]]:
    """Every name of a model, and the model's own; ids last, so that they win."""
    entries = models if isinstance(models, dict) else {}
    for name, section in entries.items():
        aliases = section.get("aliases") if isinstance(section, dict) else None
        for alias in aliases if isinstance(aliases, list) else ():
            said = alias.get("id") if isinstance(alias, dict) else alias
            if isinstance(said, str):
                yield said.replace("${MODEL_ID}", name), name
    yield from ((name, name) for name in entries)


def _targets(section: Value) -> Iterator[str]:
    targets = section.get("targets") if isinstance(section, dict) else None
    yield from (t for t in targets if isinstance(t, str)) if isinstance(targets, list) else ()


def _add_alias(models: Value, model: str, alias: str, document: Document) -> None:
    section = models.get(model) if isinstance(models, dict) else None
    if not isinstance(section, dict):
        return
    before = section.get("aliases")
    kept = before if isinstance(before, list) else []
    section["aliases"] = [*kept, alias]
    line = document.lines.get(("selectors", alias))
    if line is not None:
        document.lines["models", model, "aliases", len(kept)] = line
