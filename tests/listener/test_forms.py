"""Models named in forms."""

import json
import os
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import app_of, call, content, environ_of, ordered, parsed, refused

AUDIO = "/v1/audio/transcriptions"
KIND = 'multipart/form-data; boundary="x y"'


def _part(name: str, value: bytes, more: str = "") -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return b"--x y\r\n" + head.encode() + value + b"\r\n"


def _form(*parts: bytes, end: bytes = b"--x y--\r\n") -> bytes:
    return b"".join(parts) + end


MODEL = _part("model", b"chat")
FILE = _part("file", b"RIFF\r\n--x ynot\0\xff\r\n", '; filename="a.wav"\r\nContent-Type: audio/wav')


def _sent(body: bytes, kind: str = KIND) -> RelayOrder:
    return ordered(body, target=AUDIO, headers={"Content-Type": kind})


FORMS = {
    "before the file": _form(MODEL, FILE),
    "behind the file": _form(FILE, MODEL),
    "alone": _form(MODEL),
    "with a preamble and an epilogue": b"for old readers\r\n"
    + _form(MODEL, end=b"--x y--\r\nmore"),
    "without a last line end": _form(MODEL, FILE, end=b"--x y--"),
    "with blanks behind a boundary": _form(MODEL, FILE).replace(b"--x y\r\n", b"--x y \t\r\n"),
    "beside a file of that name": _form(_part("model", b"coder", '; filename="model"'), MODEL),
    "beside an empty field": _form(_part("prompt", b""), MODEL),
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_a_multipart_form_names_its_model_and_passes_unchanged(body: bytes) -> None:
    order = _sent(body)

    assert (order.model, order.body) == ("chat", body)
    assert parsed(order.head)[1]["content-type"] == KIND


def test_a_name_may_hold_what_names_hold() -> None:
    assert _sent(_form(_part("model", b"org/deep/model"))).model == "org/deep/model"


def test_a_child_can_be_told_another_name_in_a_form_too() -> None:
    large = _part("file", os.urandom(3_000_000), '; filename="a"')
    for body in (_form(_part("model", b"renamed"), FILE), _form(large, _part("model", b"renamed"))):
        order = _sent(body)

        assert content(order) == body.replace(b"\r\nrenamed\r\n", b'\r\nin "side"\r\n')
        length = len(body) + len('in "side"') - len("renamed")
        assert parsed(order.head)[1]["content-length"] == str(length)


BAD = {
    "cut short in a file": FILE[:-10],
    "cut short before the end": _form(MODEL, FILE, end=b""),
    "cut short in a head": _form(MODEL, b"--x y\r\nContent-Dispo", end=b""),
    "no boundary at all": b"hello",
    "nothing behind the boundary": b"--x y",
    "a head without end": _form(b"--x y\r\nX: " + b"y" * 10_000 + b"\r\n\r\nz\r\n", MODEL),
    "two models": _form(MODEL, MODEL),
    "a thousand parts": _form(*[_part("a", b"b")] * 1001, MODEL),
    "no UTF-8": _form(_part("model", b"\xff")),
    "a name without end": _form(_part("model", b"x" * 5000)),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_a_bad_form_is_refused(body: bytes) -> None:
    answer = refused(body, target=AUDIO, headers={"Content-Type": KIND})

    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "multipart/form-data; boundary=" + "x" * 300]
)
def test_a_form_without_a_usable_boundary_is_refused(kind: str) -> None:
    answer = refused(_form(MODEL), target=AUDIO, headers={"Content-Type": kind})

    assert "boundary" in answer.error["message"]


def test_a_form_without_a_model_needs_one_in_the_query() -> None:
    headers = {"Content-Type": KIND}
    assert refused(_form(FILE), target=AUDIO, headers=headers).code == "model_missing"
    assert ordered(_form(FILE), target=AUDIO + "?model=chat", headers=headers).model == "chat"


def test_a_urlencoded_form_names_its_model() -> None:
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    body = urlencode({"a": "model=coder", "model": "org/deep/model", "b": "ü&"}).encode()

    assert _sent(body, kind).model == "org/deep/model"
    assert _sent(body, kind).body == body
    renamed = content(_sent(b"a=1&model=renamed&b=2", kind)).decode()
    assert parse_qs(renamed) == {"a": ["1"], "model": ['in "side"'], "b": ["2"]}
    for bad in (b"model=chat&model=chat", b"model=" + b"x" * 5000, b"model=\xff"):
        answer = refused(bad, target=AUDIO, headers={"Content-Type": kind})
        assert answer.code == "bad_request"
    large = refused(b"a=" + b"x" * 2_000_000, target=AUDIO, headers={"Content-Type": kind})
    assert (large.status, large.code) == (413, "body_too_large")


def test_json_that_curl_calls_a_form_is_json() -> None:
    kind = "application/x-www-form-urlencoded"
    body = b' {"model": "chat", "stream": true}'

    assert ordered(body, headers={"Content-Type": kind}).streaming
    assert refused(b'{"model":', headers={"Content-Type": kind}).code == "bad_request"


@pytest.mark.parametrize("value", [b"true", b"True", b"1"])
def test_a_form_may_ask_for_a_stream(value: bytes) -> None:
    order = ordered(
        _form(MODEL, _part("stream", value)),
        target="/v1/completions",
        headers={"Content-Type": KIND},
    )

    assert order.streaming


@pytest.mark.parametrize("kind", ["text/plain", "application/vnd.api+json", "nonsense;;="])
def test_anything_else_is_read_as_json(kind: str) -> None:
    assert ordered(b'{"model":"chat"}', headers={"Content-Type": kind}).model == "chat"


@settings(deadline=None)
@given(
    st.binary(max_size=100),
    st.integers(0, 400),
    st.sampled_from([KIND, "multipart/form-data; boundary=a"]),
)
def test_any_bytes_give_an_order_or_an_envelope(noise: bytes, at: int, kind: str) -> None:
    whole = _form(MODEL, FILE)
    body = whole[: at % len(whole)] + noise + whole[at % len(whole) :]

    result = call(app_of(), environ_of("POST", AUDIO, body, {"Content-Type": kind}))

    if isinstance(result, RelayOrder):
        assert result.body == body
    else:
        assert 400 <= result.status < 500
        assert json.loads(result.body)["error"]["message"]
