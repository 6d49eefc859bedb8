"""Where the top-level members of a body begin and end, checked against what Python's own parser sees."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmsup.errors import RequestError
from qmsup.listener.members import MOST, members

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
_layouts = st.sampled_from(
    [
        {"separators": (",", ":")},
        {"separators": (" ,\n", "\t: ")},
        {"indent": 1},
        {"ensure_ascii": False},
    ]
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), _values), _layouts, st.sampled_from(["", " \r\n"]))
def test_every_member_is_found_with_its_place(
    told: dict[str, object], layout: dict[str, object], around: str
) -> None:
    text = around + json.dumps(told, **layout) + around  # type: ignore[arg-type]  # keyword arguments
    body = text.encode()

    found = list(members(body))

    assert [member.key for member in found] == list(told)
    for member, (key, value) in zip(found, told.items(), strict=True):
        assert json.loads(body[member.value : member.end]) == value
        assert body[member.start : member.value].decode().rstrip(" \t\r\n:") == json.dumps(
            key, ensure_ascii=bool(layout.get("ensure_ascii", True))
        )


def test_a_key_that_comes_twice_is_told_twice() -> None:
    body = rb'{"a":[{"a":1}] ,"\u0061":"}\"","b":{}}'

    assert [(m.key, body[m.value : m.end]) for m in members(body)] == [
        ("a", b'[{"a":1}]'),
        ("a", rb'"}\""'),
        ("b", b"{}"),
    ]


@pytest.mark.parametrize("body", [b"{}", b" {\n} "])
def test_an_empty_object_has_none(body: bytes) -> None:
    assert list(members(body)) == []


def test_there_is_a_bound() -> None:
    at_most = b"{%b}" % b",".join([b'"":0'] * MOST)

    assert len(list(members(at_most))) == MOST
    with pytest.raises(RequestError, match="more than 10000 keys"):
        list(members(at_most[:-1] + b',"":0}'))


@pytest.mark.parametrize("size", [1000, 1022, 1023, 1024, 5000])
def test_long_values_end_where_they_end(size: int) -> None:
    values = (b'"%b"' % (b"x" * size), b"1" * size, b'["%b"]' % (b"]" * size), b"1")
    body = b"{%b}" % b",".join(b'"a": %b \n' % value for value in values)

    assert tuple(body[m.value : m.end] for m in members(body)) == values


def test_a_name_without_end_is_refused() -> None:
    with pytest.raises(RequestError, match="a key of more than"):
        list(members(b'{"%b":1}' % (b"x" * 100_000)))
