import json

import pytest

from qmsup.errors import Code, Refusal
from qmsup.listener.errors import sse_error
from qmsup.listener.relay.delivery import Delivery, Enclosed, Passing, Rewrapped, chunk
from qmsup.listener.relay.framing import Chunked, Counted, FramingError, NoBody, UntilClose
from tests.support.upstreams import chunked

LOST = Refusal(code=Code.UPSTREAM_FAILED, message="it died")


def _error_in(event: bytes) -> str:
    text = event.strip()
    assert text.startswith(b"data: ")
    return str(json.loads(text.removeprefix(b"data: "))["error"]["code"])


def test_chunks_pass_as_they_came_and_nothing_behind_them() -> None:
    delivery = Passing(Chunked(), is_event_stream=False)
    body = b"00005;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n"

    assert delivery.feed(body[:9]) == body[:9]
    assert not delivery.is_complete
    assert delivery.feed(body[9:] + b"more") == body[9:]
    assert delivery.is_complete


def test_an_early_end_is_no_end() -> None:
    for framing in (Chunked(), Counted(5)):
        delivery = Passing(framing, is_event_stream=False)

        assert delivery.close() is None
        assert not delivery.is_complete


def test_an_answer_without_length_ends_with_its_connection() -> None:
    deliveries: list[Delivery] = [
        Passing(UntilClose(), is_event_stream=False),
        Rewrapped(UntilClose(), is_event_stream=False, chunked=False),
    ]

    for delivery in deliveries:
        assert delivery.feed(b"all") == b"all"
        assert delivery.close() == b""
        assert delivery.is_complete


def test_a_body_without_bytes_is_complete_at_once() -> None:
    assert Passing(NoBody(), is_event_stream=False).is_complete
    assert Passing(Counted(0), is_event_stream=False).is_complete


@pytest.mark.parametrize(
    ("seen", "shape"),
    [
        (chunked(b"data: 1\n\n", ended=False), "a chunk of ours"),
        (b"9\r\ndata", "bare"),
        (b"9\r\ndata: 1\n\n", "nothing"),
        (b"9\r", "nothing"),
    ],
)
def test_a_stream_that_breaks_gets_an_error_event_where_it_fits(seen: bytes, shape: str) -> None:
    delivery = Passing(Chunked(), is_event_stream=True)
    delivery.feed(seen)

    said = delivery.break_off(sse_error(LOST))

    if shape == "nothing":
        assert said == b""
    elif shape == "bare":
        assert _error_in(said) == "upstream_failed"
    else:
        unwrapped = Chunked().unwrap(said)
        assert chunk(unwrapped) == said
        assert _error_in(unwrapped) == "upstream_failed"


def test_what_is_no_event_stream_is_broken_off_without_a_word() -> None:
    passing = Passing(Chunked(), is_event_stream=False)
    counted = Passing(Counted(9), is_event_stream=True)
    bare = Rewrapped(Chunked(), is_event_stream=False, chunked=False)

    assert [d.break_off(sse_error(LOST)) for d in (passing, counted, bare)] == [b"", b"", b""]


def test_a_stream_that_only_its_close_ends_gets_the_event_bare() -> None:
    passing = Passing(UntilClose(), is_event_stream=True)
    old = Rewrapped(Chunked(), is_event_stream=True, chunked=False)

    assert _error_in(passing.break_off(sse_error(LOST))) == "upstream_failed"
    assert _error_in(old.break_off(sse_error(LOST))) == "upstream_failed"


def test_rewrapped_chunks_hold_the_same_payload() -> None:
    delivery = Rewrapped(Chunked(), is_event_stream=True, chunked=True)
    ours = Chunked()
    payload = b""

    for byte in chunked(b"data: 1\n\n", b"data: 2\n\n") + b"x":
        payload += ours.unwrap(delivery.feed(bytes((byte,))))

    assert payload == b"data: 1\n\ndata: 2\n\n"
    assert ours.ended
    assert delivery.is_complete


def test_rewrapping_ends_the_chunks_of_an_answer_without_length() -> None:
    delivery = Rewrapped(UntilClose(), is_event_stream=True, chunked=True)
    counted = Rewrapped(Counted(3), is_event_stream=True, chunked=True)

    assert delivery.feed(b"abc") == chunk(b"abc")
    assert delivery.close() == b"0\r\n\r\n"
    assert counted.close() is None
    assert counted.feed(b"abc") == chunk(b"abc") + b"0\r\n\r\n"


def test_an_enclosed_error_becomes_one_event_at_its_end() -> None:
    body = b'{"error": {"code": "exceed_context_size_error"}}'
    delivery = Enclosed(Counted(len(body)), status=400, is_error=True, chunked=True)

    assert delivery.feed(body[:10]) == b""
    said = delivery.feed(body[10:])

    ours = Chunked()
    assert _error_in(ours.unwrap(said)) == "exceed_context_size_error"
    assert ours.ended
    assert delivery.is_complete


@pytest.mark.parametrize("body", [b'{"error": {"code": 1}}', b"Internal Server Error"])
def test_an_enclosed_error_has_a_name_where_clients_want_one(body: bytes) -> None:
    delivery = Enclosed(
        Counted(len(body)), status=500, is_error=True, chunked=False, names_errors=True
    )

    assert delivery.feed(body).startswith(b"event: error\ndata: {")


@pytest.mark.parametrize("body", [b"Internal Server Error", b"[]", b'{"detail": "x"}', b"\xff"])
def test_an_error_without_our_envelope_is_told_in_it(body: bytes) -> None:
    delivery = Enclosed(UntilClose(), status=500, is_error=True, chunked=False)
    delivery.feed(body)

    said = delivery.close()

    assert said is not None
    assert _error_in(said) == "upstream_failed"


def test_an_enclosed_document_becomes_the_lines_of_one_event() -> None:
    delivery = Enclosed(Counted(9), status=200, is_error=False, chunked=False)

    assert delivery.feed(b'{"a":\n 1}') == b'data: {"a":\ndata:  1}\n\n'


def test_an_enclosed_answer_keeps_no_more_than_a_client_can_use() -> None:
    delivery = Enclosed(Counted(10_000_000), status=500, is_error=True, chunked=False)

    said = b"".join(delivery.feed(b"x" * 1_000_000) for _ in range(10))

    assert delivery.is_complete
    assert len(said) < 5_000


def test_an_enclosed_answer_that_breaks_is_an_error_too() -> None:
    delivery = Enclosed(Counted(10), status=200, is_error=False, chunked=False)
    delivery.feed(b"abc")

    assert delivery.close() is None
    assert _error_in(delivery.break_off(sse_error(LOST))) == "upstream_failed"
    assert Chunked().unwrap(
        Enclosed(Counted(1), status=200, is_error=False, chunked=True).break_off(sse_error(LOST))
    )


def test_an_enclosed_answer_of_nothing_is_no_event() -> None:
    for framing in (NoBody(), Counted(0)):
        assert Enclosed(framing, status=204, is_error=False, chunked=False).ending() == b""
        assert Enclosed(framing, status=204, is_error=False, chunked=True).ending() == b"0\r\n\r\n"


def test_an_enclosed_answer_that_is_large_is_not_cut_as_if_it_were_whole() -> None:
    delivery = Enclosed(UntilClose(), status=200, is_error=False, chunked=True)

    with pytest.raises(FramingError, match="no event stream"):
        delivery.feed(b"x" * 100_000)
