import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.benchmark import canned
from scripts.benchmark.answer import Answer, stamps

WHOLE = canned.whole(canned.ANSWER, closes=False)
EVENTS = 5
STREAM = (
    canned.stream_head(closes=True)
    + b"".join(canned.event(n) for n in range(EVENTS))
    + canned.LAST_CHUNK
)


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    """`whole` in pieces, cut at these places (modulo its length), none of them empty."""
    edges = sorted({0, len(whole), *(place % len(whole) for place in places)})
    return [whole[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(st.integers(min_value=0), max_size=12))
def test_a_whole_answer_ends_with_its_last_byte_however_it_is_cut(places: list[int]) -> None:
    answer = Answer()

    ended = [answer.feed(piece) for piece in cut(WHOLE, places)]

    assert ended == [False] * (len(ended) - 1) + [True]
    assert (answer.status, answer.closes, answer.events) == (b"200", False, 0)


@given(st.lists(st.integers(min_value=0), max_size=40))
def test_a_stream_ends_with_its_last_chunk_and_every_event_counts_once(places: list[int]) -> None:
    answer = Answer()

    ended = [answer.feed(piece) for piece in cut(STREAM, places)]

    assert ended == [False] * (len(ended) - 1) + [True]
    assert (answer.status, answer.closes, answer.events) == (b"200", True, EVENTS)


def test_a_stream_that_comes_byte_by_byte_is_read_the_same() -> None:
    answer = Answer()

    ended = [answer.feed(bytes([byte])) for byte in STREAM]

    assert ended.index(True) == len(STREAM) - 1
    assert answer.events == EVENTS


def test_a_stream_of_no_chunk_but_the_last_ends() -> None:
    assert Answer().feed(canned.stream_head(closes=False) + canned.LAST_CHUNK)


def test_an_empty_body_ends_with_the_head() -> None:
    assert Answer().feed(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")


def test_a_body_without_a_length_ends_only_where_the_server_closes() -> None:
    answer = Answer()

    assert not answer.feed(b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello\r\n0\r\n\r\n")
    assert answer.spans


def test_a_connection_carries_one_answer_after_another() -> None:
    answer = Answer()
    for _ in range(3):
        answer.restart()
        assert not answer.feed(STREAM[:-1])
        assert answer.feed(STREAM[-1:])
        assert answer.events == EVENTS


@pytest.mark.parametrize("status", [200, 503])
def test_the_status_is_told(status: int) -> None:
    answer = Answer()
    answer.feed(canned.whole(canned.LOADING, status=status, closes=True))

    assert answer.status == b"%d" % status


def test_the_times_in_events_are_found() -> None:
    assert stamps(STREAM) == list(range(EVENTS))
