"""The new part of a child's log is read, bounded, and nothing of an earlier start."""

from pathlib import Path

from qmsup.processes.load_log import figures_of

LINE = "load_tensors:      CUDA0 model buffer size =   700.00 MiB\n"


def test_only_what_was_written_since_counts(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text(LINE)
    since = log.stat().st_size
    with log.open("a") as file:
        file.write(LINE.replace("700", "300"))

    figures = figures_of(log, since)

    assert figures is not None
    assert figures.gpu == 300


def test_a_log_that_was_cut_meanwhile_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text(LINE)

    figures = figures_of(log, 10_000)

    assert figures is not None
    assert figures.gpu == 700


def test_too_much_to_be_read_in_full_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    log.write_text(LINE + "spam\n" * 500_000)

    assert figures_of(log, 0) is None


def test_no_log_and_bytes_that_are_no_text_say_nothing(tmp_path: Path) -> None:
    log = tmp_path / "m.log"
    assert figures_of(log, 0) is None

    log.write_bytes(bytes(range(256)) * 10)

    assert figures_of(log, 0) is None
