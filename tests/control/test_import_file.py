"""`qmsup import`: printed, or written where nothing is yet."""

from pathlib import Path

from tests.control.conftest import Run

THEIRS = """
captureBuffer: 5
models:
  chat:
    cmd: llama-server -m ${env.NOT_SET}/chat.gguf --port ${PORT}
"""


def test_it_is_printed_and_can_be_checked(qmsup: Run, places: Path) -> None:
    file, ours = places / "theirs.yaml", places / "ours.yaml"
    file.write_text(THEIRS.replace("${env.NOT_SET}", ""))

    ended = qmsup("import", str(file))

    assert (ended.code, ended.err) == (0, "")
    assert "captureBuffer: has no effect" in ended.out
    ours.write_text(ended.out)
    assert qmsup("check", str(ours)).out == f"{ours}: good (1 model, 1 listener)\n"


def test_it_is_written_for_the_user_alone_and_over_nothing(qmsup: Run, places: Path) -> None:
    file, ours = places / "theirs.yaml", places / "ours.yaml"
    file.write_text(THEIRS)

    first = qmsup("import", str(file), "-o", str(ours))
    again = qmsup("import", str(file), "-o", str(ours))
    nowhere = qmsup("import", str(file), "-o", str(places / "no" / "x.yaml"))

    assert (first.code, first.out) == (0, "")
    assert f"qmsup check {ours}" in first.err
    assert ours.stat().st_mode & 0o077 == 0
    assert (again.code, nowhere.code) == (2, 2)
    assert "is there already" in again.err
    assert "cannot be written" in nowhere.err


def test_a_file_that_would_not_load_is_refused(qmsup: Run, places: Path) -> None:
    file = places / "bad.yaml"
    file.write_text("models: {m: {cmdd: x}}")

    ended = qmsup("import", str(file))

    assert ended.code == 2
    assert "did you mean cmd" in ended.err
