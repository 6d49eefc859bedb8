"""What `qmsup import` writes means the same as what it was made from."""

from pathlib import Path

import pytest

from qmsup.config import import_file, parse
from qmsup.config.conversion import converted
from qmsup.errors import ConfigError

FILES = sorted((Path(__file__).parent / "llamaswap").glob("*.yaml"))
ENV = {"MODELS": "/srv", "KEY": "sk-secret"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_means_the_same_and_has_no_key_that_means_nothing(path: Path) -> None:
    text = path.read_text()

    ours = converted(text, name="f.yaml", env=ENV)

    assert parse(ours, env=ENV) == parse(text, env=ENV)
    for key in ("routing", "selectors", "profiles", "captureBuffer", "timeouts", "compat"):
        assert f"\n{key}:" not in ours
    assert converted(ours, name="g.yaml", env=ENV).count("\n# - ") <= text.count("metadata")


def test_what_is_left_out_is_said_at_the_top() -> None:
    text = "captureBuffer: 5\nmodels: {m: {cmd: llama-server}}"

    ours = converted(text, name="old.yaml", env={})

    assert ours.startswith("# Made from old.yaml by `qmsup import`.\n")
    assert "# - line 1: captureBuffer: has no effect" in ours


def test_the_environment_does_not_get_into_it() -> None:
    text = 'apiKeys: ["${env.KEY}", "${env.OTHER}"]\nmodels: {m: {cmd: llama-server}}'

    ours = converted(text, name="f", env=ENV)

    assert "sk-secret" not in ours
    assert "${env.KEY}" in ours
    assert "# It needs these variables where qmsup starts: KEY, OTHER." in ours


def test_texts_that_look_like_numbers_stay_texts() -> None:
    text = """
models:
  "1e5": {cmd: "llama-server --port ${PORT}", metadata: {a: "0o7", b: 0x10, c: 4.10, d: "on", e: "12:30"}}
"""
    assert parse(converted(text, name="f", env={})) == parse(text)


def test_own_listeners_are_kept() -> None:
    text = "listeners: {a: {bind: '127.0.0.1:1'}}\nmodels: {m: {cmd: llama-server}}"

    ours = converted(text, name="f", env={})

    assert "8080" not in ours
    assert parse(ours) == parse(text)


def test_a_peer_behind_tls_is_kept() -> None:
    text = "models: {m: {cmd: llama-server}}\npeers: {p: {proxy: 'https://x', models: [y]}}"

    assert "https://x" in converted(text, name="f", env={})


def test_a_file_that_would_not_load_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("models: {m: {cmdd: x}}")

    with pytest.raises(ConfigError, match="did you mean cmd"):
        import_file(path, {})
    path.write_text("models: {m: {cmd: llama-server}}")
    assert str(path) in import_file(path, {})
