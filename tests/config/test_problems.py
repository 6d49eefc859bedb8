"""Problems: one line each, in the order of the file, no consequences and no secrets."""

import pytest

from qmsup.config.problems import (
    MOST,
    Path,
    Problem,
    Problems,
    TooManyProblemsError,
    did_you_mean,
    key_path,
    line_of,
    shown,
)


def test_lines_come_in_the_order_of_the_file() -> None:
    problems = Problems()
    problems.add(("b",), "second")
    problems.add(("a",), "first")

    assert problems.lines("f.yaml", {("a",): 1, ("b",): 7}) == (
        "f.yaml:1: a: first",
        "f.yaml:7: b: second",
    )


def test_what_is_inside_a_wrong_key_is_not_told() -> None:
    problems = Problems()
    problems.add(("a", "b"), "inside")
    problems.add(("a",), "the whole")

    assert problems.lines("f", {("a",): 1}) == ("f:1: a: the whole",)


def test_the_same_line_is_told_once() -> None:
    problems = Problems()
    problems.add(("a",), "x")
    problems.add(("a",), "x")

    assert problems.lines("f", {}) == ("f: a: x",)


def test_what_follows_from_a_problem_is_left_unsaid() -> None:
    problems = Problems()
    problems.add(("a", "b"), "x")
    for path in (("a",), ("a", "b"), ("a", "b", "c")):
        problems.follow(path, "follows")
    problems.follow(("a", "d"), "own")

    assert [p.text for p in problems.found] == ["x", "own"]


def test_a_column_is_told_where_there_is_a_line() -> None:
    problems = Problems(found=[Problem(text="x", line=3, column=4)])

    assert problems.lines("f", {}) == ("f:3:4: x",)


def test_the_search_ends_at_some_number() -> None:
    problems = Problems()
    for number in range(MOST - 1):
        problems.add((str(number),), "x")
    with pytest.raises(TooManyProblemsError):
        problems.add(("last",), "x")

    assert len(problems.lines("f", {})) == MOST + 1
    assert problems.lines("f", {})[-1].startswith("f: and more")


def test_a_key_without_a_line_takes_the_nearest_around_it() -> None:
    assert line_of(("a", "b", 0), {("a",): 4}) == 4
    assert line_of(("z",), {("a",): 4}) is None


KEYS: dict[str, Path] = {
    "models.chat.env[0]": ("models", "chat", "env", 0),
    'models."a.b".cmd': ("models", "a.b", "cmd"),
    "models.acme/coder:latest": ("models", "acme/coder:latest"),
    'models."two\\nlines"': ("models", "two\nlines"),
    'apiKeys."…".x': ("apiKeys", "sk-secret", "x"),
}


@pytest.mark.parametrize("told", KEYS)
def test_keys_read_back(told: str) -> None:
    assert key_path(KEYS[told]) == told


def test_a_long_key_is_cut() -> None:
    assert len(key_path(("k" * 1000,))) < 100


def test_half_pairs_do_not_break_the_output() -> None:
    problems = Problems()
    problems.add(("\ud800",), "x")

    assert problems.lines("f", {})[0].encode()


SHOWN: dict[str, tuple[Path, object, str]] = {
    "text": (("a",), "24GB", ', not "24GB"'),
    "number": (("a",), 5, ", not 5"),
    "flag": (("a",), True, ", not true"),
    "mapping": (("a",), {}, ""),
    "empty": (("a",), "", ""),
    "secret": (("apiKeys", 0), "sk-1", ""),
    "command": (("models", "a", "cmd"), "x --api-key y", ""),
    "environment": (("models", "a", "env", 0), "TOKEN=y", ""),
    "long": (("a",), "x" * 100, ', not "' + "x" * 59 + '…"'),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_value_is_shown_unless_it_may_be_secret(case: str) -> None:
    path, value, told = SHOWN[case]

    assert shown(path, value) == told


@pytest.mark.parametrize("word", ["estVramGb", "est_vram_gb", "estVRamGB", "estVramGBB"])
def test_near_words_are_suggested(word: str) -> None:
    assert did_you_mean(word, ["cmd", "estVramGB"]) == "; did you mean estVramGB?"


def test_far_words_are_not_suggested() -> None:
    assert did_you_mean("zzz", ["cmd", "estVramGB"]) == ""


def test_what_is_meant_counts_for_more_than_what_looks_alike() -> None:
    assert did_you_mean("command", ["cmd", "compat"]) == "; did you mean cmd?"
    assert did_you_mean("command", ["compat"]) == "; did you mean compat?"
