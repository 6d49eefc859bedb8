"""A file is what is opened, blamed and merged: one concept each (functions are ruff's to measure)."""

import sys
from pathlib import Path

from tests.support.tree import ROOT, files_of_tests, modules

# A file that tells nothing about what is in it collects everything.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "misc", "common", "manager", "data", "info"}


def test_no_module_grows_past_four_hundred_lines() -> None:
    assert _longer_than(400, modules()) == {}


def test_no_test_file_grows_past_five_hundred_lines() -> None:
    assert _longer_than(500, files_of_tests()) == {}


def test_no_module_is_named_for_nothing_or_like_the_standard_library() -> None:
    taken = EMPTY_NAMES | sys.stdlib_module_names
    named = {module: module.stem for module in modules() if not module.stem.startswith("__")}

    assert [str(module) for module, name in named.items() if name in taken] == []


def _longer_than(limit: int, files: list[Path]) -> dict[str, int]:
    lengths = {str(file): len((ROOT / file).read_text().splitlines()) for file in files}
    return {file: length for file, length in lengths.items() if length > limit}
