"""Refusals as clients read them."""

import io
import json
from http.client import HTTPResponse
from typing import cast

import pytest

from qmsup.errors import Code, Refusal, status_of
from qmsup.listener.errors import error_body, error_headers, error_response, sse_error
from qmsup.units import Seconds


class _Wire:
    """As much of a socket as http.client reads an answer from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _parsed(answer: bytes, method: str = "POST") -> HTTPResponse:
    response = HTTPResponse(cast("object", _Wire(answer)), method=method)  # type: ignore[arg-type]  # duck-typed
    response.begin()
    return response


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_an_envelope_and_an_answer(code: Code) -> None:
    refusal = Refusal(code=code, message="why", retry_after=Seconds(0.2))

    response = _parsed(error_response(refusal, origin=None, request_id="q-1", close=False))

    assert response.status == status_of(code)
    assert response.getheader("Retry-After") == "1"
    assert response.getheader("X-QM-Request-Id") == "q-1"
    assert response.getheader("Connection") == "keep-alive"
    error = json.loads(response.read())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code.value


def test_types_are_those_openai_clients_know() -> None:
    said = {code: json.loads(error_body(Refusal(code=code, message="")))["error"] for code in Code}

    assert said[Code.BAD_REQUEST]["type"] == "invalid_request_error"
    assert said[Code.INVALID_API_KEY]["type"] == "authentication_error"
    assert said[Code.QUEUE_FULL]["type"] == "rate_limit_error"
    assert said[Code.UPSTREAM_FAILED]["type"] == "server_error"
    assert said[Code.MODEL_NOT_FOUND]["param"] == "model"


def test_a_head_request_gets_the_length_but_no_body() -> None:
    refusal = Refusal(code=Code.LINE_FULL, message="full")
    whole = error_response(refusal, origin=None, request_id=None, close=True)

    head = error_response(refusal, origin=None, request_id=None, close=True, head_only=True)

    assert head.endswith(b"\r\n\r\n")
    assert whole == head + error_body(refusal)
    assert f"Content-Length: {len(error_body(refusal))}".encode() in head


def test_waits_are_rounded_up_to_whole_seconds() -> None:
    refusal = Refusal(code=Code.LINE_FULL, message="full", retry_after=Seconds(2.1))

    response = _parsed(error_response(refusal, origin=None, request_id=None, close=True))

    assert response.getheader("Retry-After") == "3"
    assert response.getheader("Connection") == "close"


HELPS = {
    Code.QUEUE_FULL,
    Code.LINE_FULL,
    Code.WAIT_TIMEOUT,
    Code.MODEL_UNLOADED,
    Code.MODEL_UNAVAILABLE,
    Code.UPSTREAM_FAILED,
    Code.SCHEDULER_UNAVAILABLE,
    Code.SHUTTING_DOWN,
    Code.DRAINING,
    Code.NO_HOST,
    Code.INSUFFICIENT_VRAM,
}


@pytest.mark.parametrize("code", list(Code))
def test_where_a_retry_can_help_it_is_said_when(code: Code) -> None:
    headers = error_headers(Refusal(code=code, message="why"), origin=None, request_id=None)

    assert ("Retry-After" in dict(headers)) is (code in HELPS)


def test_what_is_known_of_the_request_stands_in_the_head() -> None:
    refusal = Refusal(code=Code.LINE_FULL, message="full")
    about = b"X-QM-Model: m\r\nX-QM-Request-Id: q-1\r\n"

    response = _parsed(
        error_response(refusal, origin=None, request_id=None, close=True, about=about)
    )

    assert response.getheader("X-QM-Model") == "m"
    assert response.getheader("X-QM-Request-Id") == "q-1"
    assert json.loads(response.read())["error"]["code"] == "line_full"


def test_a_browser_may_read_the_error() -> None:
    refusal = Refusal(code=Code.LINE_FULL, message="full")

    response = _parsed(
        error_response(refusal, origin="http://ui.local", request_id=None, close=True)
    )

    assert response.getheader("Access-Control-Allow-Origin") == "http://ui.local"
    assert "X-QM-Request-Id" in (response.getheader("Access-Control-Expose-Headers") or "")
    assert response.getheader("Vary") == "Origin"


@pytest.mark.parametrize("origin", ["a\r\nX-Evil: 1", "a\nb", "\xff", "x" * 5000])
def test_an_origin_that_is_none_is_not_echoed(origin: str) -> None:
    refusal = Refusal(code=Code.LINE_FULL, message="full")

    response = _parsed(error_response(refusal, origin=origin, request_id=None, close=True))

    assert response.getheader("Access-Control-Allow-Origin") is None
    assert response.getheader("X-Evil") is None


def test_an_event_of_a_stream_is_one_line_whatever_the_message_holds() -> None:
    event = sse_error(Refusal(code=Code.UPSTREAM_FAILED, message="a\nb\n\ndata: \ud800 é"))

    assert event.startswith(b"data: {")
    assert event.endswith(b"}\n\n")
    assert event.count(b"\n") == 2
    assert json.loads(event[6:])["error"]["code"] == "upstream_failed"


def test_an_event_for_clients_of_anthropic_s_has_a_name() -> None:
    event = sse_error(Refusal(code=Code.UPSTREAM_FAILED, message="it died"), named=True)

    name, data, *rest = event.split(b"\n")
    assert (name, rest) == (b"event: error", [b"", b""])
    told = json.loads(data.removeprefix(b"data: "))
    assert (told["type"], told["error"]["code"]) == ("error", "upstream_failed")


def test_an_endless_message_is_cut_in_the_middle() -> None:
    body = error_body(Refusal(code=Code.MODEL_LOAD_FAILED, message="start" + "x" * 9000 + "end"))

    message = json.loads(body)["error"]["message"]
    assert message.startswith("start")
    assert message.endswith("end")
    assert len(message) < 2100
