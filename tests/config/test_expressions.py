"""Expressions of the matrix: what binds to what, and what is told about one that is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.config.expressions import Joined, Tree, Word, is_name, parse

READ = {
    "a": "a",
    "a & b": "(a & b)",
    "a|b": "(a | b)",
    "a | b & c": "(a | (b & c))",
    "a & b | c": "((a & b) | c)",
    "(a | b) & c": "((a | b) & c)",
    "a & b & c": "(a & b & c)",
    "a | b | c": "(a | b | c)",
    "a & (b & c)": "(a & (b & c))",
    "((a))": "a",
    "+other": "+other",
    "+x&a|+y": "((+x & a) | +y)",
    "qwen-2.5_7B&ns/model:tag@1": "(qwen-2.5_7B & ns/model:tag@1)",
    "\n  a\n| b\t": "(a | b)",
    "(" * 32 + "a" + ")" * 32: "a",
}

WRONG = {
    "": "names no model; write for example `(chat | code) & embed`",
    " \n": "names no model; write for example `(chat | code) & embed`",
    "a b": "nothing joins a and b; put & (both) or | (one of them) between",
    "a (b)": 'nothing joins a and "("; put & (both) or | (one of them) between',
    "(a b)": "nothing joins a and b; put & (both) or | (one of them) between",
    "a +b": "nothing joins a and +b; put & (both) or | (one of them) between",
    "a &": "a name is missing at the end; write one, or remove what joins it",
    "& a": "a name is missing before &; write one, or remove what joins it",
    "a & | b": "a name is missing before |; write one, or remove what joins it",
    "()": "a name is missing before ); write one, or remove what joins it",
    "a | + b": "a + stands alone; write +NAME with the name of another set",
    "(a | b": "a ( is never closed; add a )",
    "a | b)": "a ) closes nothing; remove it",
    "(" * 33 + "a" + ")" * 33: "parentheses are nested more than 32 deep; write it flatter",
}


def told(tree: Tree) -> str:
    match tree:
        case Word(text=text, is_set=is_set):
            return f"+{text}" if is_set else text
        case Joined(are_together=are_together, parts=parts):
            return f"({(' & ' if are_together else ' | ').join(map(told, parts))})"


@pytest.mark.parametrize("text", READ, ids=range(len(READ)))
def test_an_expression_is_read(text: str) -> None:
    assert told(parse(text)) == READ[text]


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_one_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text)

    assert str(caught.value) == WRONG[text]


@given(st.text(alphabet="ab +&|()", max_size=30))
def test_whatever_is_written_is_read_or_refused_and_reads_back(text: str) -> None:
    try:
        tree = parse(text)
    except ValueError:
        return

    assert parse(told(tree)) == tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [("g", True), ("a/b:c", True), ("a b", False), ("a&b", False), ("", False)],
)
def test_a_name_is_what_an_expression_could_hold(text: str, *, expected: bool) -> None:
    assert is_name(text) is expected
