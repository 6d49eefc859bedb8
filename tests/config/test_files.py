"""Configurations as files: the examples, what is no file, encodings, the environment."""

from pathlib import Path

import pytest

from qmsup.config import Configuration, load, parse, read_file
from qmsup.errors import ConfigError
from qmsup.ids import ModelId

EXAMPLES = sorted((Path(__file__).parents[2] / "deploy" / "examples").glob("*.yaml"))
TWO_MODELS = "models: {m: {cmd: llama-server}, n: {cmd: llama-server, aliases: [al]}}\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_load(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHAT_KEY", "AGENT_KEY"):
        monkeypatch.setenv(name, "sk-example")

    assert load(path).models


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "no.yaml")

    assert caught.value.problems == (
        f"{tmp_path}/no.yaml: cannot be read: no such file or directory; name a readable file",
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        load(tmp_path)


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no path"):
        load(Path("a\0b"))


def test_a_file_in_another_encoding_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes("models:\n  é: x".encode("latin-1"))

    with pytest.raises(ConfigError) as caught:
        load(path)

    assert caught.value.problems == (f"{path}:2: is not UTF-8 text; save it as UTF-8",)


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(TWO_MODELS, encoding="utf-8-sig")

    assert list(load(path).models) == ["m", "n"]
    assert read_file(path) == Configuration(path=path, text=TWO_MODELS, spec=load(path))
    assert read_file(path).spec == load(path)
    assert read_file(path).text == path.read_text(encoding="utf-8-sig")


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMSUP_TEST_NAME", "Chat")

    spec = parse("models: {m: {cmd: llama-server, name: '${env.QMSUP_TEST_NAME}'}}")

    assert spec.models[ModelId("m")].name == "Chat"
