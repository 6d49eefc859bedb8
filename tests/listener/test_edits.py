"""What is changed in a body, and what is not."""

import io
import json
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmsup.listener.body import Body
from qmsup.listener.edits import Edits, edited
from qmsup.listener.spool import SPOOL_ABOVE
from tests.support.listener_app import CHAT, content, ordered, parsed


def _edited(text: bytes, edits: Edits) -> bytes:
    body = edited(Body(content=text, length=len(text)), edits)
    assert isinstance(body.content, bytes)
    assert body.length == len(body.content)
    return body.content


STRIPPED = {
    "the first": (b'{ "x" : 1 , "a":2}', b'{"a":2}'),
    "one in the middle": (b'{"a":1, "x":[1,{}] ,"b":2}', b'{"a":1 ,"b":2}'),
    "the last": (b'{"a":1,\n "x":"}"\n}', b'{"a":1\n}'),
    "the only one": (b'{"x":1}', b"{}"),
    "all of two": (b'{"x":1,"y":2}', b"{}"),
    "two at the start": (b'{"x":1,"y":2,"a":3}', b'{"a":3}'),
    "two at the end": (b'{"a":3,"x":1,"y":2}', b'{"a":3}'),
    "twice": (b'{"x":1,"a":3,"x":1}', b'{"a":3}'),
    "none": (b' { "a" : 1.50, "b":{"x":1} }\n', b' { "a" : 1.50, "b":{"x":1} }\n'),
}


@pytest.mark.parametrize(("before", "after"), STRIPPED.values(), ids=STRIPPED.keys())
def test_keys_are_taken_out_and_the_rest_stays_to_the_byte(before: bytes, after: bytes) -> None:
    assert _edited(before, Edits(strip=frozenset("xy"))) == after


PUT = {
    "in its place": (b'{"a":1, "x": {"x":2} ,"b":3}', b'{"a":1, "x": 7 ,"b":3}'),
    "at the end": (b'{"a":1 }', b'{"a":1,"x":7 }'),
    "into nothing": (b"{ }", b'{"x":7 }'),
    "twice": (b'{"x":1,"x":2}', b'{"x":7,"x":7}'),
    "though it is taken out": (b'{"x":1,"y":2}', b'{"x":7}'),
}


@pytest.mark.parametrize(("before", "after"), PUT.values(), ids=PUT.keys())
def test_keys_are_set(before: bytes, after: bytes) -> None:
    assert _edited(before, Edits(strip=frozenset("xy"), put={"x": b"7"})) == after


def test_a_name_is_only_changed_where_there_is_one() -> None:
    rename = Edits(rename=b'"new"')

    assert _edited(b'{"a":{"model":1}, "model" : "old"}', rename) == (
        b'{"a":{"model":1}, "model" : "new"}'
    )
    assert _edited(b'{"a":1}', rename) == b'{"a":1}'


_keys = st.sampled_from(["a", "b", "x", "y", "model", "é"])


@settings(deadline=None)
@given(st.dictionaries(_keys, st.integers() | st.text(max_size=3)), st.booleans())
def test_it_is_what_a_parser_would_have_made(told: dict[str, object], is_spaced: bool) -> None:
    text = json.dumps(told, indent=1 if is_spaced else None, ensure_ascii=False)
    try:
        before = text.encode()
    except UnicodeEncodeError:
        return
    edits = Edits(strip=frozenset("ab"), put={"x": b'"set"', "b": b"null"}, rename=b'"m"')

    after = json.loads(_edited(before, edits))

    expected = {key: value for key, value in told.items() if key != "a"} | {"x": "set", "b": None}
    if "model" in told:
        expected["model"] = "m"
    assert after == expected


@pytest.mark.parametrize("asked", [True, False])
def test_a_stream_may_be_set_or_taken_out(asked: bool) -> None:
    assert Edits().streams(asked) is asked
    assert Edits(strip=frozenset({"stream"})).streams(asked) is False
    assert Edits(put={"stream": b"true"}).streams(asked) is True
    assert Edits(put={"stream": b"false"}).streams(asked) is False


def test_the_filters_of_a_model_are_for_json_and_for_the_name_that_was_used() -> None:
    body = b'{"model": "filtered", "top_k":4, "a":[{"top_k":1}] }'
    assert content(ordered(body)) == (
        b'{"model": "filtered", "a":[{"top_k":1}],"temperature":0.5,"stop":["a"] }'
    )

    high = ordered(b'{"temperature":1,"model":"filtered:high","stream":false}')
    assert content(high) == (
        b'{"temperature":0.5,"model":"filtered:high","stream":true,"stop":null,"effort":"high"}'
    )
    assert high.streaming
    assert parsed(high.head)[1]["content-length"] == str(len(content(high)))

    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert content(ordered(b"model=filtered&top_k=4", headers=form)) == b"model=filtered&top_k=4"
    assert content(ordered(b"", target=CHAT + "?model=filtered")) == b""


def test_a_large_body_goes_from_file_to_file() -> None:
    text = b'{"x":"%b","a":1}' % (b"x" * (3 * SPOOL_ABOVE))
    file = tempfile.TemporaryFile()  # noqa: SIM115 - edited() closes it
    file.write(text)
    file.seek(0)

    body = edited(Body(content=file, length=len(text)), Edits(put={"a": b"2"}))

    assert file.closed
    assert not isinstance(body.content, bytes | io.BytesIO)
    with body.content as changed:
        assert changed.tell() == 0
        assert changed.read() == text.replace(b'"a":1', b'"a":2')
    assert body.length == len(text)
