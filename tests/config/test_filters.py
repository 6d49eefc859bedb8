"""`filters:` of a model."""

import pytest

from qmsup.config.loading import parse
from qmsup.errors import ConfigError
from qmsup.ids import ModelId
from qmsup.spec import FilterSpec, ModelSpec

_CHAT = "models:\n  chat:\n    cmd: llama-server --port ${PORT}\n"


def _chat(text: str) -> ModelSpec:
    return parse(_CHAT + text).models[ModelId("chat")]


def _problems(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(_CHAT + text)
    return str(caught.value)


def test_without_any_nothing_is_changed() -> None:
    assert _chat("").filters == _chat("    filters:\n").filters == FilterSpec()


def test_what_llama_swap_takes_is_taken() -> None:
    spec = _chat("""    aliases: [gpt]
    macros: {effort: 3}
    filters:
      stripParams: "temperature, top_p,,model , top_p"
      setParams:
        temperature: 0.70
        stop: [a, "${MODEL_ID}"]
        count: ${effort}
        deep: {a: {b: null}, model: x}
        flag: true
      setParamsByID:
        "${MODEL_ID}": {}
        "${MODEL_ID}:high": {effort: high, temperature: 1e2}
        gpt: {n: 0x10}
""")

    assert spec.filters == FilterSpec(
        strip=("temperature", "top_p"),
        put={
            "temperature": "0.7",
            "stop": '["a","chat"]',
            "count": "3",
            "deep": '{"a":{"b":null},"model":"x"}',
            "flag": "true",
        },
        put_by_name={
            "chat": {},
            "chat:high": {"effort": '"high"', "temperature": "100.0"},
            "gpt": {"n": "16"},
        },
    )
    assert spec.aliases == ("gpt", "chat:high")


def test_an_older_spelling_is_understood() -> None:
    assert _chat("    filters: {strip_params: 'top_k, top_p'}\n").filters.strip == (
        "top_k",
        "top_p",
    )


WRONG = {
    "    filters: {stripParam: a}\n": ("filters.stripParam", "did you mean stripParams"),
    "    filters: {stripParams: [a]}\n": ("filters.stripParams", "must be text"),
    "    filters: {setParams: {model: a}}\n": ("setParams.model", "useModelName"),
    "    filters: {setParams: {a: .inf}}\n": ("setParams.a", "finite"),
    "    filters: {setParams: {a: [1, {b: .nan}]}}\n": ("setParams.a", "number"),
    "    filters: {setParams: [a]}\n": ("filters.setParams", "mapping"),
    "    filters: {setParamsByID: {a: 1}}\n": ("setParamsByID.a", "mapping"),
    "    filters: {setParamsByID: {'${other}': {a: 1}}}\n": ("setParamsByID", "not known here"),
    "    filters: {setParamsByID: {b: {a: 1}}}\n  b: {cmd: 'x --port ${PORT}'}\n": (
        "setParamsByID.b",
        "is the name of a model",
    ),
    "    filters: {setParamsByID: {x: {a: 1}}}\n  b: {cmd: 'x --port ${PORT}', aliases: [x]}\n": (
        "models.b.aliases",
        "alias of model chat already",
    ),
    "    filters: {setParamsByID: {' x': {a: 1}}}\n": ("setParamsByID", "blanks"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_where_it_stands(text: str) -> None:
    said = _problems(text)

    assert [words for words in WRONG[text] if words not in said] == [], said
