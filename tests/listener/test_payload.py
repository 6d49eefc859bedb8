"""What a JSON body asks for, and how it can be wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import CHAT, app_of, call, content, environ_of, ordered, refused

BAD = {
    "nothing but a space": b" ",
    "cut short": b'{"model":"chat","messages":[',
    "a list": b"[]",
    "a string": b'"chat"',
    "null": b"null",
    "a number": b"12",
    "two documents": b'{"model":"chat"} {"model":"chat"}',
    "a trailing comma": b'{"model":"chat",}',
    "no quotes": b"{model:1}",
    "single quotes": b"{'model':'chat'}",
    "not a number": b'{"model":"chat","x":NaN}',
    "a leading zero": b'{"model":"chat","x":01}',
    "a raw control character": b'{"model":"chat","x":"\x01"}',
    "an unknown escape": b'{"model":"chat","x":"\\q"}',
    "half a character": b'{"model":"chat","x":"\\ud800"}',
    "no UTF-8 in a value": b'{"model":"chat","x":"\xff\xfe"}',
    "no UTF-8 in a key": b'{"model":"chat","\xc3":1}',
    "no UTF-8 in the model": b'{"model":"\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"model":"chat"}',
    "UTF-16": '{"model":"chat"}'.encode("utf-16"),
    "deep lists": b'{"model":"chat","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"model":"chat","x":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "a deep model": b'{"model":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "two models": b'{"model":"chat","model":"chat"}',
    "two models apart": b'{"model":"chat","x":[{"model":1}],"model":"coder","y":{"model":2}}',
    "two models, one null": b'{"model":"chat","model":null}',
    "a second model in disguise": b'{"model":"chat","\\u006dodel":"coder"}',
    "two models in disguise": b'{"mode\\u006C":"coder","x":{"model":"chat"},"mo\\u0064el":1}',
    "two models and a thousand others": b'{"model":"a"%b,"model":"b"}'
    % (b',"x":{"model":1}' * 999),
    "more keys than any API has": b'{"model":"chat"%b,"x":{"model":1}}' % (b',"":0' * 10_001),
    "a form": b"model=chat&prompt=x",
    "a large one cut short": b'{"model":"chat","x":"' + b"x" * 2_000_000,
    "a large one without UTF-8": b'{"model":"chat","x":"' + b"\xff" * 2_000_000 + b'"}',
    "a large one ending in half a character": b'{"model":"chat"}' + b" " * 2_000_000 + b"\xc3",
}

MISSING = {
    "no body": b"",
    "an empty object": b"{}",
    "an empty name": b'{"model":""}',
    "null": b'{"model":null}',
    "a number": b'{"model":7}',
    "a list": b'{"model":["chat"]}',
    "an object": b'{"model":{"id":"chat"}}',
    "only a nested one": b'{"x":{"model":"chat"},"y":"model"}',
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_bad_body_is_refused(body: bytes) -> None:
    answer = refused(body)

    assert (answer.status, answer.code) == (400, "bad_request")
    assert answer.error["type"] == "invalid_request_error"


def test_the_refusal_says_where() -> None:
    assert "byte 17" in refused(b'{"model":"chat", x:1}').error["message"]
    assert "byte 21" in refused(b'{"model":"chat","x":"\xff"}').error["message"]
    assert "too early" in refused(b'{"model":"chat"').error["message"]
    assert "two `model` keys" in refused(BAD["two models"]).error["message"]


@pytest.mark.parametrize("body", MISSING.values(), ids=MISSING.keys())
def test_a_body_without_a_model_is_refused(body: bytes) -> None:
    answer = refused(body)

    assert (answer.status, answer.code) == (400, "model_missing")
    assert answer.error["param"] == "model"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"model":""}', b'{"model":null}'])
def test_the_query_may_name_the_model_instead(body: bytes) -> None:
    order = ordered(body, target=CHAT + "?a=1&model=org%2Fdeep%2Fmodel")

    assert order.model == "org/deep/model"
    assert order.body == body


def test_a_query_of_too_many_parameters_is_refused() -> None:
    answer = refused(b"{}", target=CHAT + "?model=chat" + "&a=b" * 200)

    assert (answer.status, answer.code) == (400, "bad_request")


def test_the_body_beats_the_query() -> None:
    assert ordered(b'{"model":"chat"}', target=CHAT + "?model=coder").model == "chat"


@pytest.mark.parametrize(
    ("stream", "is_streaming"),
    [
        ("true", True),
        ("false", False),
        ("1", False),
        ('"true"', False),
        ("null", False),
        ("[]", False),
    ],
)
def test_only_true_asks_for_a_stream(stream: str, is_streaming: bool) -> None:
    body = f'{{"model":"chat","stream": {stream} }}'.encode()

    assert ordered(body).streaming is is_streaming
    assert ordered(body, target="/v1/embeddings").streaming is False


def test_a_key_may_be_written_with_escapes() -> None:
    assert ordered(b'{"mode\\u006C":"coder","x":{"model":"chat"}}').model == "coder"


def test_a_name_that_nobody_can_have_is_not_looked_up() -> None:
    answer = refused(b'{"model":"%b"}' % (b"x" * 2_000_000))

    assert (answer.status, answer.code) == (404, "model_not_found")
    assert len(answer.error["message"]) < 200


RENAMED = {
    "plain": '{"model":"renamed","x":1}',
    "spaced": '{ "x" : "ü", "model"\n:\t"renamed" }',
    "escaped": r'{"model":"ren\u0061med","x":1}',
    "nested before": '{"tools":[{"model":"renamed"}],"model":"renamed"}',
    "nested after": '{"model":"renamed","tools":[{"model":"renamed"},{"model":{"model":1}}]}',
    "as a value": '{"x":"model","y":["model"],"model":"renamed","z":"model"}',
    "after a quote": r'{"x":"\"model","model":"renamed","y":"\"model\":\"renamed\""}',
    "letters by number": r'{"x":"\u006d","model":"renamed"}',
}


@pytest.mark.parametrize("text", RENAMED.values(), ids=RENAMED.keys())
def test_a_child_can_be_told_another_name_and_nothing_else_changes(text: str) -> None:
    sent = content(ordered(text.encode()))

    expected = json.loads(text)
    expected["model"] = 'in "side"'
    assert json.loads(sent) == expected
    value = b'"ren\\u0061med"' if b"\\u0061" in text.encode() else b'"renamed"'
    before, after = sent.split(rb'"in \"side\""')
    assert before + value + after == text.encode()


@pytest.mark.parametrize("nested", [1, 2, 3, 50, 1001])
@pytest.mark.parametrize("at", [0, 1, -1])
def test_one_model_among_many_nested_ones_is_found(nested: int, at: int) -> None:
    fields = [f'"f{i}":{{"model":"coder"}}' for i in range(nested)]
    fields.insert(at % (nested + 1), '"model":"renamed"')

    sent = json.loads(content(ordered(f"{{{','.join(fields)}}}".encode())))

    assert sent["model"] == 'in "side"'
    assert sent["f0"] == {"model": "coder"}
    fields.insert(nested // 2, '"model":"chat"')
    assert refused(f"{{{','.join(fields)}}}".encode()).code == "bad_request"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_order_or_an_envelope(body: bytes) -> None:
    result = call(app_of(), environ_of("POST", CHAT, body))

    if not isinstance(result, RelayOrder):
        assert 400 <= result.status < 500
        assert result.error["message"]


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("model"), inner),
)


@settings(deadline=None)
@given(st.dictionaries(st.text() | st.just("messages"), _json), st.booleans())
def test_any_object_with_a_model_gives_an_order(fields: dict[str, object], in_ascii: bool) -> None:
    fields["model"] = "chat"
    try:
        body = json.dumps(fields, ensure_ascii=in_ascii).encode()
    except UnicodeEncodeError:
        return

    result = call(app_of(), environ_of("POST", CHAT, body))

    if isinstance(result, RelayOrder):
        assert result.body == body
    else:
        assert b"\\ud" in body, result
