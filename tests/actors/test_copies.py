"""Copies of the configuration, which hold keys."""

from pathlib import Path

import pytest

from qmsup.actors.copies import keep_copy


def test_a_copy_is_named_by_its_text_and_its_owner_s_alone(tmp_path: Path) -> None:
    copy = keep_copy("apiKeys: [ü]", tmp_path / "config")

    assert copy.path.read_text() == "apiKeys: [ü]"
    assert copy.path.stat().st_mode & 0o777 == 0o600
    assert copy.path.parent.stat().st_mode & 0o777 == 0o700
    assert keep_copy("apiKeys: [ü]", tmp_path / "config") == copy
    assert keep_copy("apiKeys: [u]", tmp_path / "config").version != copy.version


def test_one_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    first, *_ = [keep_copy(text, tmp_path) for text in "abc"]
    first.path.with_suffix(".new").mkdir()  # in the way, as a full disk is

    assert keep_copy("a", tmp_path) == first
    assert keep_copy("d", tmp_path) is not None
    assert first.path.exists()  # the youngest but one
    first.path.write_text("spoilt")
    with pytest.raises(OSError, match="directory"):
        keep_copy("a", tmp_path)


def test_only_the_last_few_are_kept_and_no_half_written_one(tmp_path: Path) -> None:
    copies = [keep_copy(text, tmp_path) for text in "abcda"]

    assert set(tmp_path.iterdir()) == {copy.path for copy in copies[-3:]}


def test_what_a_crash_left_half_written_is_no_hindrance(tmp_path: Path) -> None:
    copy = keep_copy("a", tmp_path)
    copy.path.unlink()
    copy.path.with_suffix(".new").write_text("half")

    assert keep_copy("a", tmp_path).path.read_text() == "a"
