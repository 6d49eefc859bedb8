"""Figures are of a command and of its files as they are: another file of the same name is another model."""

import os
from pathlib import Path

import pytest

from qmsup.actors import footprints
from qmsup.actors.footprints import find, keep, key_of
from qmsup.actors.state_file import open_state
from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.ids import EventNumber, ModelId
from qmsup.units import MiB


def measured(peak: int, *argv: str) -> Remember:
    return Remember(
        cause=EventNumber(1),
        model=ModelId("m"),
        argv=argv,
        peak=MiB(peak),
        ram=MiB(3),
        seen_by=SeenBy.LOAD_LOG,
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "chat.gguf"
    file.write_bytes(b"weights")
    return file


def test_the_newest_figure_of_a_command_is_found(tmp_path: Path, model: Path) -> None:
    argv = ("llama-server", "-m", str(model), "--port", "${PORT}")
    database = open_state(tmp_path / "state.db")
    for peak in (700, 650):
        keep(database, key_of(argv), measured(peak, *argv))

    found = find(database, key_of(argv))

    assert found is not None
    assert (found.gpu, found.ram, found.seen_by) == (650, 3, SeenBy.LOAD_LOG)
    assert find(database, key_of((*argv, "-c", "4096"))) is None
    database.close()


def test_a_model_file_that_was_replaced_is_another_model(model: Path) -> None:
    argv = ("llama-server", "-m", str(model))
    before = key_of(argv)

    model.write_bytes(b"more weights")
    os.utime(model, ns=(1, 1))

    assert key_of(argv) != before
    assert key_of(argv).arguments == before.arguments


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "FILE"),
        ("--model=FILE",),
        ("--diffusion-model", "FILE"),
        ("--verbose", "FILE"),
        ("--vae", "FILE", "-m", "FILE"),
    ],
)
def test_the_model_file_is_found_however_it_is_named(model: Path, words: tuple[str, ...]) -> None:
    argv = ("server", *(word.replace("FILE", str(model)) for word in words))

    assert key_of(argv).model_file == str(model)


def test_a_model_that_is_no_file_goes_by_its_command() -> None:
    fetched = key_of(("llama-server", "-hf", "org/model:Q4"))

    assert fetched.model_file == ""
    assert fetched != key_of(("llama-server", "-hf", "org/other:Q4"))
    assert key_of(("llama-server", "-m")).model_file == ""
    assert key_of(("llama-server", "-m", "not/there.gguf")).model_file == "not/there.gguf"


@pytest.mark.parametrize("name", ["/models/\udce9.gguf", "\ud800", "a\0b", "x" * 9000])
def test_words_that_no_file_can_be_named_by_have_a_key_too(tmp_path: Path, name: str) -> None:
    database = open_state(tmp_path / "state.db")
    argv = ("server", "-m", name)

    keep(database, key_of(argv), measured(7, *argv))

    assert find(database, key_of(argv)) is not None
    database.close()


def test_old_figures_make_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprints, "_MOST", 3)
    database = open_state(tmp_path / "state.db")
    keys = [key_of(("server", str(number))) for number in range(5)]
    for number, key in enumerate(keys):
        keep(database, key, measured(100 + number))

    assert [find(database, key) is not None for key in keys] == [False, False, True, True, True]
    database.close()


@pytest.mark.parametrize("told", ["'much'", "17592186040561", "-5"])
def test_a_figure_that_is_none_is_not_believed(tmp_path: Path, told: str) -> None:
    database = open_state(tmp_path / "state.db")
    key = key_of(("server",))
    keep(database, key, measured(700))
    database.execute(f"UPDATE footprints SET gpu_mib = {told}")

    assert find(database, key) is None
    database.close()
