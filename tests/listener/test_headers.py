"""What goes on to the child, and what qmsup reads for itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.listener.headers import _known as known_names
from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import CHAT, app_of, call, environ_of, ordered, parsed, refused

BODY = b'{"model":"chat"}'


def test_the_head_asks_the_child_as_the_client_asked() -> None:
    order = ordered(
        BODY,
        target=CHAT + "?a=%2F+b&c=%C3%BC",
        headers={
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "test/1",
            "Accept-Encoding": "gzip",
            "Accept": "",
            "Cookie": "a=b; c=d",
            "X-Own-Thing": "caf\xe9",
        },
    )

    line, headers = parsed(order.head)
    assert line == f"POST {CHAT}?a=%2F+b&c=%C3%BC HTTP/1.1"
    assert headers == {
        "content-type": "application/json; charset=utf-8",
        "user-agent": "test/1",
        "accept-encoding": "gzip",
        "accept": "",
        "cookie": "a=b; c=d",
        "x-own-thing": "caf\xe9",
        "content-length": str(len(BODY)),
        "connection": "close",
    }


def test_what_is_for_us_or_for_this_connection_stays_here() -> None:
    order = ordered(
        BODY,
        headers={
            "Authorization": "Bearer sk-1",
            "X-Api-Key": "sk-1",
            "Proxy-Authorization": "Basic x",
            "X-Conversation-Id": "c",
            "X-QM-Hold-Ms": "1",
            "X-QM-Anything": "1",
            "Connection": "keep-alive, X-Mine, TE",
            "X-Mine": "1",
            "Keep-Alive": "timeout=5",
            "TE": "trailers",
            "Trailer": "X-T",
            "Upgrade": "h2c",
            "Proxy-Connection": "keep-alive",
            "Expect": "100-continue",
            "Content-Type": "",
        },
    )

    _, headers = parsed(order.head)
    assert headers == {"content-length": str(len(BODY)), "connection": "close"}


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v/chat/completions", "/v1/chat/completions"),
        ("/v1/chat%2Fcompletions", "/v1/chat/completions"),
        ("/completion", "/completion"),
        ("/embeddings", "/embeddings"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens"),
    ],
)
def test_spellings_of_a_path_become_the_childs(path: str, upstream: str) -> None:
    order = ordered(BODY, target=path + "?x=1")

    assert parsed(order.head)[0] == f"POST {upstream}?x=1 HTTP/1.1"


@pytest.mark.parametrize("evil", ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rb", "a\0b", "\u20ac"])
def test_no_header_can_smuggle_another_in(evil: str) -> None:
    assert refused(BODY, headers={"X-Mine": evil}).code == "bad_request"
    assert refused(BODY, target=CHAT + "?x=" + evil).code == "bad_request"


@given(st.text(max_size=50), st.text(max_size=50))
def test_whatever_a_header_or_query_holds_the_head_can_be_read_back(value: str, query: str) -> None:
    environ = environ_of("POST", CHAT, BODY, {"X-Mine": value})
    environ["QUERY_STRING"] = query

    result = call(app_of(), environ)

    if isinstance(result, RelayOrder):
        line, headers = parsed(result.head)
        assert line.split(" ") == ["POST", CHAT + (f"?{query}" if query else ""), "HTTP/1.1"]
        assert headers.keys() == {"x-mine", "content-length", "connection"}


WISHES = {
    "0": 0.0,
    "250": 0.25,
    " 1500 ": 1.5,
    "999999999999999999999999": 1e9,
    "": None,
    "  ": None,
}


@pytest.mark.parametrize(("said", "meant"), WISHES.items())
def test_times_in_headers_are_milliseconds(said: str, meant: float | None) -> None:
    order = ordered(
        BODY,
        headers={"X-QM-Hold-Ms": said, "X-QM-Patience-Ms": said, "X-QM-Timeout-Ms": said},
    )

    assert (order.hold, order.patience, order.timeout) == (meant, meant, meant)


@pytest.mark.parametrize("said", ["-1", "1.5", "1e3", "soon", "\xb2", "1_000", "1, 2"])
@pytest.mark.parametrize("name", ["X-QM-Hold-Ms", "X-QM-Patience-Ms", "X-QM-Timeout-Ms"])
def test_a_time_that_is_none_is_refused_by_its_name(name: str, said: str) -> None:
    refusal = refused(BODY, headers={name: said})

    assert refusal.code == "bad_request"
    assert str(refusal.error["message"]).startswith(f"the header {name} takes a whole number")


def test_no_wishes_are_no_wishes() -> None:
    order = ordered(BODY)

    assert (order.hold, order.patience, order.timeout, order.origin) == (None, None, None, None)


def test_the_origin_is_kept_for_answers_of_the_engine() -> None:
    assert ordered(BODY, headers={"Origin": "http://ui"}).origin == "http://ui"


def test_made_up_names_do_not_pile_up() -> None:
    for number in range(0, 2000, 50):
        headers = {f"X-Made-Up-{n}": "1" for n in range(number, number + 50)}

        passed = parsed(ordered(BODY, headers=headers).head)[1]

        assert f"x-made-up-{number}" in passed
    assert len(known_names) <= 600
