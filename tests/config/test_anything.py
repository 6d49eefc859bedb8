"""Whatever a file holds, there is a spec or a list of problems: nothing else is ever raised."""

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmsup.config import parse
from qmsup.config.shape import SECTIONS, keys_of
from qmsup.errors import ConfigError
from qmsup.spec import Spec

ENV = {"SET": "1", "ODD": "\udc80"}

KEYS = st.sampled_from(sorted({k for s in SECTIONS.values() for k in keys_of(s)}))
WORDS = st.sampled_from([
    "llama-server --port ${PORT}", "llama-server -np", "x ${m} '", "${a}", "${b} ${a}", "${env.SET}", "${env.NO}",
    "${env.ODD}", "${MODEL_ID}", "${PID}", "127.0.0.1:80", "[::1]:80", ":", "http://h:${PORT}", "http://[", "none",
    "log:x", "A=b", "=", "24GB", "chat", "stop", "info", "", " ", "#", "\\", "yes", "1", "\ud800", "\x85",
])  # fmt: skip
NAMES = st.sampled_from(["chat", "a", "b", "x-a", "(default)", "a/b:c", " ", "é" * 90, "PORT", "m"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.binary(max_size=3)
    | WORDS
    | st.text(max_size=8)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS | NAMES | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
LIST = st.lists(NAMES | WORDS | SCALARS, max_size=3)


def _near(keys: tuple[str, ...]) -> st.SearchStrategy[dict[str, object]]:
    """A section whose keys are mostly right."""
    return st.dictionaries(st.sampled_from(keys) | KEYS, WORDS | LIST | ANYTHING, max_size=5)


def _named(place: str) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(NAMES, _near(keys_of(SECTIONS[place])) | SCALARS, max_size=3)


NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "models": _named("models.NAME"),
        "groups": _named("groups.NAME"),
        "listeners": _named("listeners.NAME"),
        "scheduler": _near(keys_of(SECTIONS["scheduler"])),
        "macros": st.dictionaries(NAMES, WORDS | SCALARS, max_size=4),
        "apiKeys": LIST,
    },
)


def _outcome(text: str) -> None:
    try:
        spec = parse(text, env=ENV)
    except ConfigError as error:
        problems = error.problems
    else:
        assert isinstance(spec, Spec)
        return
    assert problems
    for problem in problems:
        assert problem.startswith("config.yaml")
        assert len(problem.splitlines()) == 1
        assert problem.encode()


@given(ANYTHING)
@settings(max_examples=150, deadline=None)
def test_any_document_is_a_spec_or_problems(document: object) -> None:
    _outcome(yaml.safe_dump(document))


@given(NEARLY, st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_near_configuration_is_a_spec_or_problems(document: object, unicode: bool) -> None:
    _outcome(yaml.safe_dump(document, allow_unicode=unicode))


@given(
    st.text(
        alphabet=st.sampled_from("ab:-[]{}#&*!|>'\"%@`,?~<=\\ \n\t0x\ufeff\x85\u2028"), max_size=40
    )
)
@settings(max_examples=300, deadline=None)
@example("%YAML 1." + "9" * 5000 + "\n---\na")
@example("!<" + "x" * 10)
@example("a: !!int 'x'")
@example("a: !!int")
@example("? ")
@example("&a *a")
@example("<<: ")
@example('"\\U00110000"')
@example("!%ff x")
def test_any_text_is_a_spec_or_problems(text: str) -> None:
    _outcome(text)
