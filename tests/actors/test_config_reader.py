"""The file is read beside the scheduler: what comes of it, whatever it is."""

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pykka
import pytest

from qmsup import config
from qmsup.actors.config_reader import ConfigRead, ConfigReader, ConfigRefused, ReadFile
from qmsup.actors.tree import end_actors
from qmsup.ids import AskId

Said = SimpleQueue[ConfigRead | ConfigRefused]
ASK = AskId("q")


@pytest.fixture
def said() -> Iterator[Said]:
    yield SimpleQueue()
    end_actors()


def reader(folder: Path, said: Said) -> pykka.ActorRef[ConfigReader]:
    return ConfigReader.start(path=folder / "c.yaml", folder=folder / "copies", report=said.put)


def test_a_good_file_is_told_with_its_copy_each_time_as_it_is_then(
    tmp_path: Path, said: Said
) -> None:
    ref = reader(tmp_path, said)
    for name in ("a", "b"):
        (tmp_path / "c.yaml").write_text(f"models: {{{name}: {{cmd: llama-server}}}}")
        ref.tell(ReadFile(ask=ASK))

        read = said.get(timeout=10)

        assert isinstance(read, ConfigRead)
        assert (read.ask, list(read.spec.models)) == (ASK, [name])
        assert config.load(read.copy.path) == read.spec


def test_what_means_less_here_is_in_the_log(
    tmp_path: Path, said: Said, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c.yaml").write_text("captureBuffer: 5\nmodels: {a: {cmd: llama-server}}")

    reader(tmp_path, said).tell(ReadFile())

    assert isinstance(said.get(timeout=10), ConfigRead)
    assert [record.getMessage() for record in caplog.records] == ["config.remark"]


def test_every_problem_of_a_bad_file_is_told(tmp_path: Path, said: Said) -> None:
    (tmp_path / "c.yaml").write_text("models: {a: {}}\nstartPort: 0")

    reader(tmp_path, said).tell(ReadFile())

    refused = said.get(timeout=10)
    assert isinstance(refused, ConfigRefused)
    assert [problem.split(": ")[1] for problem in refused.problems] == ["models.a.cmd", "startPort"]
    assert not (tmp_path / "copies").exists()


def test_a_copy_that_cannot_be_kept_is_a_refusal_too(tmp_path: Path, said: Said) -> None:
    (tmp_path / "c.yaml").write_text("models: {a: {cmd: llama-server}}")
    (tmp_path / "copies").touch()

    reader(tmp_path, said).tell(ReadFile())

    refused = said.get(timeout=10)
    assert isinstance(refused, ConfigRefused)
    assert "cannot keep a copy" in refused.problems[0]


def test_a_bug_of_ours_is_a_refusal_and_the_next_file_is_read(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.yaml").write_text("models: {a: {cmd: llama-server}}")
    ref = reader(tmp_path, said)
    with monkeypatch.context() as broken:
        broken.setattr(config, "read_file", None)
        ref.tell(ReadFile(ask=ASK))
        refused = said.get(timeout=10)
    assert isinstance(refused, ConfigRefused)
    assert "a bug of qmsup" in refused.problems[0]

    ref.tell(ReadFile(ask=ASK))

    assert isinstance(said.get(timeout=10), ConfigRead)
