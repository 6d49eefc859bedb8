"""Folders that a user may not look into, by a user whom a mode is for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.daemon.doctor import folders, model_files, programs, running
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.closed import as_its_owner, closed_above
from tests.support.doctoring import box_with, graded, model, script
from tests.support.users import as_nobody


@pytest.fixture
def closed(places: Path) -> Iterator[Path]:
    """A folder that nobody may look into, on a way that is open."""
    places.chmod(0o755)
    folder = where.make_private(where.runtime_dir())
    script(folder / "llama-server", "#!/bin/sh\n")
    (folder / "m.gguf").write_text("GGUF")
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def test_the_outermost_is_found(closed: Path) -> None:
    link = closed.parent / "link"
    link.symlink_to(closed / "m.gguf")
    with as_nobody():
        assert closed_above(closed / "a" / "b") == closed
        assert closed_above(link) == closed
        assert closed_above(closed) is None
    assert closed_above(closed.parent / "none" / "at all") is None


def test_an_owner_is_named(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_its_owner(Path("/")) == "run this as its owner (sudo -u root)"
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert as_its_owner(Path("/")) == "run this as its owner (user 0)"


def test_a_program_and_a_model_in_it_are_not_said_to_be_missing(closed: Path) -> None:
    program, file = closed / "llama-server", closed / "m.gguf"
    wrapper = script(closed.parent / "wrapper", f"#!{program}\n")
    with as_nobody():
        inside = box_with(model(program, "-m", file))
        [of_program] = programs.look(inside)
        [of_file] = model_files.look(inside)
        [of_wrapper] = programs.look(box_with(model(wrapper)))

    assert (of_program.grade, of_file.grade, of_wrapper.grade) == ("bad", "bad", "bad")
    assert f"may not look into {closed}" in of_program.says
    assert f"may not look into {closed}" in of_file.says
    assert of_wrapper.says.endswith(f"not for user {os.geteuid() or 65534}")


def test_folders_of_another_user_are_told_and_who_may(closed: Path) -> None:
    with as_nobody():
        found = [*running.look(Box()), *folders.look(Box())]

    assert graded(found)[:2] == [("warn", str(closed)), ("bad", str(closed))]
    assert all("run this as its owner" in finding.do for finding in found[:2])
