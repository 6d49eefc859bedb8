"""Keys in a configuration: what they open, what is wrong with one, and that none of them shows."""

import pytest

from qmsup.config import parse
from qmsup.errors import ConfigError
from qmsup.ids import ListenerName, ModelId
from qmsup.spec import KeySpec

OK_MODELS = "models: {m: {cmd: llama-server}, n: {cmd: llama-server, aliases: [al]}}\n"


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text, name="f", env={})
    return caught.value.problems


SECRETS = [
    "apiKeys: sk-secret",
    "apiKeys: {sk-secret: 1}",
    "apiKeys: {sk-secret: 1, sk-secret: 2}",
    "apiKeys: [[sk-secret]]",
    "apiKeys: [{sk-secret: 1}]",
    "apiKeys: [{key: sk-secret x}]",
    "apiKeys: [{key: [sk-secret]}]",
    "apiKeys: [{key: {sk-secret: 1}}]",
    "apiKeys: [sk-secret, {key: sk-secret, admin: false}]",
    "listeners: {l: {apiKeys: [{sk-secret: 1}]}}",
    "apiKeys: [sk-secret x]",
    "apiKeys: *sk-secret",
    "apiKeys: ['sk-secret]",
    "apiKeys: ['sk-secret${x}']",
    "listeners: {l: {apiKeys: sk-secret}}",
    "listeners: {l: {apiKeys: [[sk-secret]]}}",
    "listeners: {l: {apikeys: [sk-secret]}}",
    "apiKey: sk-secret",
    "apiKeys: !!binary sk-secret",
]


@pytest.mark.parametrize("line", SECRETS)
def test_no_key_shows_in_an_error(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(OK_MODELS + line, env={})

    assert "sk-" not in f"{caught.value} {caught.value!r} {caught.value.problems}"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "peers: {far: {proxy: 'http://10.0.0.2:8080', models: [big]}}",
        "hosts: {box: {url: 'http://10.0.0.2:8080', models: {big: {}}}}",
        "hosts: {box: {url: 'http://10.0.0.2:8080'}}",
    ],
)
def test_a_key_may_be_for_models_of_other_machines(elsewhere: str) -> None:
    spec = parse(f"{OK_MODELS}apiKeys: [{{key: k, models: [big]}}]\n{elsewhere}")

    (key,) = spec.listeners[ListenerName("main")].api_keys
    assert key.models == frozenset({ModelId("big")})


HASHED = "sha256:" + "0" * 64


def test_a_key_has_a_name_and_models_it_is_for() -> None:
    text = f"""
models: {{chat: {{cmd: llama-server, aliases: [gpt]}}, coder: {{cmd: llama-server}}}}
apiKeys:
  - plain
  - {{key: "{HASHED}", name: laptop, models: [gpt]}}
  - {{key: ops, models: [chat, coder], admin: yes}}
  - {{key: guest, admin: no}}
listeners: {{all: , own: {{bind: "[::1]:8081", apiKeys: [{{key: k}}]}}}}
"""
    listeners = parse(text).listeners

    chat = ModelId("chat")
    assert listeners[ListenerName("all")].api_keys == (
        KeySpec(key="plain"),
        KeySpec(key=HASHED, name="laptop", models=frozenset({chat}), admin=False),
        KeySpec(key="ops", models=frozenset({chat, ModelId("coder")})),
        KeySpec(key="guest", admin=False),
    )
    assert listeners[ListenerName("own")].api_keys == (KeySpec(key="k"),)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{name: a}", "apiKeys[0]: a key is empty"),
        ("{key: a, models: [chatt]}", "apiKeys[0].models[0]: there is no model chatt"),
        ("{key: a, models: []}", "apiKeys[0].models: names no model"),
        ("{key: a, modles: [m]}", "unknown key; did you mean models?"),
        ("sha256:abc", "apiKeys[0]: sha256: is followed by 64 digits"),
        ("a, {key: a, admin: no}", "apiKeys[1]: this key is given twice"),
    ],
)
def test_what_is_wrong_with_a_key_is_told(entry: str, told: str) -> None:
    (problem,) = problems(f"{OK_MODELS}apiKeys: [{entry}]")

    assert told in problem


def test_no_key_shows_in_the_repr_of_a_spec() -> None:
    assert "sk-secret" not in repr(parse(f"{OK_MODELS}apiKeys: [sk-secret]"))
