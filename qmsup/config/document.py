"""YAML text as plain values, with the line of every key.

PyYAML's composer is used and its constructor is not: no tag can make an object. The walk over its nodes does what
the constructor would not: it refuses a key given twice, keeps the line of each key, and has a bound on everything
(depth, size, what aliases may grow to). Plain words follow YAML 1.2, so `on`, `12:30` and `2024-01-01` are text.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field

import yaml
from typing_extensions import override

from qmsup.config.problems import Path, Problem, Problems, TooManyProblemsError
from qmsup.errors import key_text

MAX_BYTES = 1 << 20
_MAX_DEPTH = 48
_MAX_VALUES = 50_000
_MAX_TEXT = 4 << 20
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_PLAIN = "plain"
_TYPED = frozenset(f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null"))

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+|0o[0-7]+")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""What JSON, which is YAML too, makes of one character beyond U+FFFF when it escapes it."""
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan")


class WrittenInt(int):
    """A whole number that remembers how it was written: where text is wanted, `007` and `0x10` stay themselves."""

    text: str


class WrittenFloat(float):
    """A number that remembers how it was written: a model may be called `4.10`."""

    text: str


@dataclass(slots=True)
class Document:
    """What a file says.

    Attributes:
        root: the whole document; None = an empty one.
        lines: the line, from 1, of every key and list entry.
    """

    root: Value = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)


class _Loader(yaml.SafeLoader):
    """Composes nodes only. Plain words are resolved below."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own way

    depth = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            said = f"nested more than {_MAX_DEPTH} levels deep"
            raise yaml.composer.ComposerError(None, None, said, mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.add_implicit_resolver(_MERGE, re.compile(r"<<$"), ["<"])
_Loader.add_implicit_resolver(_PLAIN, re.compile(""), None)


def read(text: str) -> Document:
    """The document in a text. What is wrong is in `problems`; `root` is what could be read."""
    document = Document()
    if len(text) > MAX_BYTES:
        document.problems.add((), f"is larger than {MAX_BYTES >> 20} MiB: no configuration is")
        return document
    problem, node = _compose(text)
    if problem is not None:
        document.problems.found.append(problem)
    elif node is not None:
        with suppress(TooManyProblemsError):
            document.root = _Walk(document).value(node, ())
    return document


def _compose(text: str) -> tuple[Problem | None, yaml.Node | None]:
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        return None, loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        return _broken(error), None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return Problem(text="holds a character that no YAML may; remove it", line=line), None
    except (ValueError, OverflowError):  # a \U escape or a version number beyond all bounds
        line = loader.line + 1 if loader is not None else 1
        return Problem(text="is not valid YAML", line=line), None
    finally:
        if loader is not None:
            loader.dispose()


def _broken(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = error.problem or error.context or "cannot be understood"
    if "undefined alias" in said:  # its name might be the start of a secret
        said = "*NAME stands for an anchor &NAME above, and there is none; quote text that starts with a star"
    elif "expected a single document" in (error.context or ""):
        said = "a second document starts here; keep one, without `---` between"
    elif "\\t" in said:
        said = "a tab where spaces must be; indent with spaces"
    elif error.context and error.context not in said:
        said = f"{said} ({error.context})"
    text = f"not valid YAML: {said}"
    if mark is None:
        return Problem(text=text)
    return Problem(text=text, line=mark.line + 1, column=mark.column + 1)


class _Walk:
    """Turns nodes into values; what an alias stands for is walked again at each use, within a budget."""

    def __init__(self, document: Document) -> None:
        self._lines = document.lines
        self._problems = document.problems
        self._left = _MAX_VALUES
        self._text_left = _MAX_TEXT
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Value:
        """The value of one node. Wrong ones are noted and read as nothing."""
        if not self._enter(node, path):
            return None
        try:
            match node:
                case yaml.ScalarNode():
                    return self._scalar(node, path)
                case yaml.SequenceNode():
                    return self._list(node, path)
                case yaml.MappingNode():
                    return self._mapping(node, path)
                case _:
                    return None
        finally:
            self._open.discard(id(node))

    def _enter(self, node: yaml.Node, path: Path) -> bool:
        if id(node) in self._open:
            self._problems.add(path, "an alias stands inside its own anchor", line=_line(node))
            return False
        if self._left <= 0 or self._text_left < 0:
            text = "is too large, or grows so by its aliases; write less"
            self._problems.add((), text)
            raise TooManyProblemsError
        self._left -= 1
        self._open.add(id(node))
        return True

    def _check_tag(self, node: yaml.Node, path: Path, known: frozenset[str]) -> None:
        if node.tag not in known:
            tag = key_text(node.tag.removeprefix(_TAG).removeprefix("!"))
            self._problems.add(
                path, f"the tag {tag} is not known here; remove it", line=_line(node)
            )

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Value:
        self._check_tag(node, path, _TYPED | {_PLAIN, _MERGE, f"{_TAG}str"})
        text = self._text(node, path)
        return plain(text) if node.tag == _PLAIN or node.tag in _TYPED else text

    def _text(self, node: yaml.ScalarNode, path: Path) -> str:
        text = _PAIR.sub(_whole, str(node.value))
        self._text_left -= len(text)
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            said = "holds a character that no text may (NUL, or half a pair); remove it"
            self._problems.add(path, said, line=_line(node))
            return ""
        return text

    def _list(self, node: yaml.SequenceNode, path: Path) -> list[Value]:
        self._check_tag(node, path, frozenset({f"{_TAG}seq"}))
        values: list[Value] = []
        for index, child in enumerate(node.value):
            self._lines[(*path, index)] = _line(child)
            values.append(self.value(child, (*path, index)))
        return values

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Value]:
        self._check_tag(node, path, frozenset({f"{_TAG}map"}))
        values: dict[str, Value] = {}
        self._refuse_twice(node, path)
        self._fill(node, path, values)
        return values

    def _refuse_twice(self, node: yaml.MappingNode, path: Path) -> None:
        first: dict[str, yaml.Node] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            earlier = first.setdefault(key_node.value, key_node)
            if earlier is not key_node:
                text = f"given twice, first on line {_line(earlier)}; keep one"
                self._problems.add((*path, key_node.value), text, line=_line(key_node))

    def _fill(self, node: yaml.MappingNode, path: Path, values: dict[str, Value]) -> None:
        """Add a mapping's keys that are not there yet: its own first, then those it merges in."""
        for key_node, child in node.value:
            if key_node.tag != _MERGE and (key := self._key(key_node, path)) and key not in values:
                self._lines[(*path, key)] = _line(key_node)
                values[key] = self.value(child, (*path, key))
        for key_node, child in node.value:
            if key_node.tag == _MERGE:
                self._merge(child, path, values)

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._problems.add(path, "a key must be plain text", line=_line(node))
            return None
        key = self._text(node, path)
        if not key:
            self._problems.add(path, "a key is empty; name it", line=_line(node))
        return key

    def _merge(self, node: yaml.Node, path: Path, values: dict[str, Value]) -> None:
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                text = "<< takes a mapping, or a list of them, mostly by an alias (<<: *base)"
                self._problems.add(path, text, line=_line(source))
            elif self._enter(source, path):
                self._fill(source, path, values)
                self._open.discard(id(source))


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def plain(text: str) -> Value:
    """What an unquoted word is: null, true, false, a number, else text."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return _number(text)
    except ValueError:  # thousands of digits
        return text


def _number(text: str) -> Value:
    if _INT.fullmatch(text):
        whole = WrittenInt(text, 0)
        whole.text = text
        return whole
    if _FLOAT.fullmatch(text):
        broken = WrittenFloat(text.replace(".inf", "inf").replace(".nan", "nan"))
        broken.text = text
        return broken
    return text


def _whole(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
