"""YAML as plain values: lines, keys given twice, merges, and bounds on everything."""

import pytest

from qmsup.config.document import Document, Value, WrittenFloat, WrittenInt, plain, read


def problems(text: str) -> tuple[str, ...]:
    document = read(text)
    return document.problems.lines("f", document.lines)


def test_every_key_and_entry_has_its_line() -> None:
    document = read("a:\n  b: 1\n  c:\n    - x\n    - y\n")

    assert document.root == {"a": {"b": 1, "c": ["x", "y"]}}
    assert document.lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 3,
        ("a", "c", 0): 4,
        ("a", "c", 1): 5,
    }


WORDS: dict[str, Value] = {
    "": None, "~": None, "null": None, "NULL": None,
    "true": True, "False": False,
    "yes": "yes", "on": "on", "12:30": "12:30", "2024-01-01": "2024-01-01", "1_000": "1_000",
    "0": 0, "-3": -3, "0x10": 16, "0o17": 15,
    "007": 7.0, "1.50": 1.5, "-1e3": -1000.0, ".5": 0.5, "-.inf": float("-inf"),
    "9" * 5000: "9" * 5000,
}  # fmt: skip


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word[:12])
def test_plain_words_mean_what_yaml_1_2_says(word: str) -> None:
    value = plain(word)

    assert value == WORDS[word]
    assert isinstance(value, bool) == isinstance(WORDS[word], bool)


def test_numbers_remember_how_they_were_written() -> None:
    whole, broken = plain("0x1F"), plain("4.10")

    assert isinstance(whole, WrittenInt)
    assert whole.text == "0x1F"
    assert isinstance(broken, WrittenFloat)
    assert broken.text == "4.10"


def test_quoted_words_are_text() -> None:
    assert read("a: '5'\nb: \"true\"\nc: !!str 5\nd: !!int '5'").root == {
        "a": "5",
        "b": "true",
        "c": "5",
        "d": 5,
    }


def test_keys_are_text_as_written() -> None:
    assert read("4.10: a\ntrue: b\n0x1: c\n").root == {"4.10": "a", "true": "b", "0x1": "c"}


def test_own_keys_win_over_merged_ones_and_earlier_merges_over_later() -> None:
    text = """
x: &x {a: 1, b: 1, c: 1}
y: &y {a: 2, b: 2, d: 2}
deep: &deep {<<: *y, e: 3}
z: {a: 0, <<: [*x, *deep]}
"""
    document = read(text)

    assert isinstance(document.root, dict)
    assert document.root["z"] == {"a": 0, "b": 1, "c": 1, "e": 3, "d": 2}
    assert document.lines["z", "b"] == 2
    assert not document.problems.found


def test_an_empty_file_is_nothing() -> None:
    assert read("# only words\n") == Document()


BAD = {
    "a: 1\nb: 2\na: 3": "f:3: a: given twice, first on line 1; keep one",
    "a: {x: 1, x: 2}": "f:1: a.x: given twice, first on line 1; keep one",
    "apiKeys: {sk-1: 1, sk-1: 2}": 'f:1: apiKeys."…": given twice, first on line 1; keep one',
    "a:\n  b: [": "f:2:7: not valid YAML: expected the node content, but found '<stream end>' "
    "(while parsing a flow node)",
    "a: b\n\tc: d": "f:2:1: not valid YAML: a tab where spaces must be; indent with spaces",
    "a: *sk-secret": "f:1:4: not valid YAML: *NAME stands for an anchor &NAME above, and there is "
    "none; quote text that starts with a star",
    "a: 1\n---\nb: 2": "f:2:1: not valid YAML: a second document starts here; keep one, without "
    "`---` between",
    "a: !!python/object/apply:os.system [x]": "f:1: a: the tag "
    "\"python/object/apply:os.system\" is not known here; remove it",
    "a: !secret x": "f:1: a: the tag secret is not known here; remove it",
    "a: !!set {x}": "f:1: a: the tag set is not known here; remove it",
    "a: &a [*a]": "f:1: a[0]: an alias stands inside its own anchor",
    "a: &a {<<: *a}": "f:1: a: an alias stands inside its own anchor",
    "a: {<<: 5}": "f:1: a: << takes a mapping, or a list of them, mostly by an alias (<<: *base)",
    "? [a]\n: b": "f:1: a key must be plain text",
    "{'': b}": "f:1: a key is empty; name it",
    "a: \"x\\0y\"": "f:1: a: holds a character that no text may (NUL, or half a pair); remove it",
    "a: 1\nb: \x01": "f:2: holds a character that no YAML may; remove it",
    'a: 1\nb: "\\UFFFFFFFF"': "f:2: is not valid YAML",
    "a: " + "[" * 60: "f:1:51: not valid YAML: nested more than 48 levels deep",
    "a: " + "x" * (1 << 20): "f: is larger than 1 MiB: no configuration is",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20].encode("unicode_escape").decode())
def test_what_is_no_plain_document_is_told_with_its_line(text: str) -> None:
    assert problems(text) == (BAD[text],)


def test_both_halves_of_a_pair_are_one_character() -> None:
    assert read('{"a": "x\\ud83d\\ude00y", "\\ud83d\\ude00": 1}').root == {"a": "x😀y", "😀": 1}


def test_half_a_pair_is_refused() -> None:
    assert problems('a: "\\ud800"') == (
        "f:1: a: holds a character that no text may (NUL, or half a pair); remove it",
    )


def test_aliases_do_not_grow_without_bound() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert problems("\n".join(levels)) == (
        "f: is too large, or grows so by its aliases; write less",
    )


def test_aliased_text_does_not_grow_without_bound() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]"

    assert problems(text) == ("f: is too large, or grows so by its aliases; write less",)


def test_merges_do_not_grow_without_bound() -> None:
    levels = ["a0: &a0 {k: v}"]
    levels += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)]

    assert problems("\n".join(levels)) == (
        "f: is too large, or grows so by its aliases; write less",
    )


def test_many_problems_end_the_reading() -> None:
    text = "\n".join(f"a{n}: !x 1" for n in range(1000))

    assert len(problems(text)) == 201
