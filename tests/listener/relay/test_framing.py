import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.listener.relay.framing import (
    MAX_HEAD,
    Chunked,
    Counted,
    Framing,
    FramingError,
    Head,
    NoBody,
    UntilClose,
    read_head,
)

HEADS = {
    "a length": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, Counted),
    "a length in any case": ("GET", b"HTTP/1.1 200 OK\r\ncontent-LENGTH:5\r\n\r\n", 200, Counted),
    "the same length twice": (
        "GET",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        200,
        Counted,
    ),
    "chunks": ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, Chunked),
    "chunks win over a length": (
        "GET",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: Chunked\r\n\r\n",
        200,
        Chunked,
    ),
    "a coding that is none": (
        "GET",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n",
        200,
        Counted,
    ),
    "neither": ("POST", b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n", 200, UntilClose),
    "an answer to HEAD": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, NoBody),
    "no content": ("GET", b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n", 204, NoBody),
    "not modified": ("GET", b"HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", 304, NoBody),
    "no reason": ("GET", b"HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n", 500, Counted),
    "after a continue": (
        "POST",
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        ),
        200,
        Counted,
    ),
}

BROKEN_HEADS = {
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "no code": b"HTTP/1.1 OK\r\n\r\n",
    "a long code": b"HTTP/1.1 2000 OK\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    "a name with a space": b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
    "a folded line": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "an empty length": b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
    "a length beyond measure": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "a coding not asked for": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "a coding under chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a coding over chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    "chunks in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
    "a space within a name": b"HTTP/1.1 200 OK\r\nX A: 5\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\r\nA: b\nSet-Cookie: c\r\n\r\n",
    "two bare line feeds": b"HTTP/1.1 200 OK\r\nA: b\n\n<html>\r\n\r\n",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\n\r\n",
    "a line feed in the reason": b"HTTP/1.1 200 O\nSet-Cookie: c\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
    "a code below 100": b"HTTP/1.1 099 Early\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "no end": b"HTTP/1.1 200 OK\r\nA: " + b"b" * MAX_HEAD,
    "an end that comes late": b"HTTP/1.1 200 OK\r\nA: " + b"b" * MAX_HEAD + b"\r\n\r\n",
}

BROKEN_CHUNKS = {
    "no number": b"xyz\r\n",
    "no digits": b"\r\n",
    "a sign": b"-5\r\nhello\r\n",
    "an underscore": b"1_0\r\n",
    "a prefix": b"0x5\r\nhello\r\n",
    "a huge size": b"1" * 40 + b"\r\n",
    "a bare line feed": b"5\nhello\r\n",
    "a bare carriage return": b"5;a\rb\r\nhello\r\n",
    "a bare carriage return in a trailer": b"0\r\nA: b\rC: d\r\n\r\n",
    "more than its size": b"5\r\nhello!\r\n",
    "a size line without end": b"5;" + b"x" * 9000,
}


@pytest.mark.parametrize("case", HEADS)
def test_a_head_says_how_its_body_ends(case: str) -> None:
    method, data, status, framing = HEADS[case]

    head = read_head(data + b"rest", method=method)

    assert isinstance(head, Head)
    assert head.lines.status == status
    assert type(head.framing) is framing
    assert data[head.length :] == b""


@pytest.mark.parametrize("case", HEADS)
def test_a_head_that_comes_byte_by_byte_is_the_same(case: str) -> None:
    method, data, status, framing = HEADS[case]
    buffer = b""
    heads: list[Head] = []

    for at in range(len(data)):
        buffer += data[at : at + 1]
        head = read_head(buffer, method=method)
        if isinstance(head, Head):
            heads.append(head)
        else:
            buffer = buffer[head:]

    assert [(h.lines.status, type(h.framing)) for h in heads] == [(status, framing)]


@pytest.mark.parametrize("case", BROKEN_HEADS)
def test_what_is_no_answer_is_an_error(case: str) -> None:
    with pytest.raises(FramingError):
        read_head(BROKEN_HEADS[case], method="GET")


def test_fields_keep_their_order_and_spelling() -> None:
    data = b"HTTP/1.1 418 I'm a teapot\r\nX-B: 1\r\nx-a:2\r\nX-B:  3\r\n\r\n"

    head = read_head(data, method="GET")

    assert isinstance(head, Head)
    assert head.lines.reason == b"I'm a teapot"
    assert head.lines.fields == ((b"x-b", b"X-B: 1"), (b"x-a", b"x-a:2"), (b"x-b", b"X-B:  3"))


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (b"text/event-stream", True),
        (b"Text/Event-Stream; charset=utf-8", True),
        (b"application/json", False),
    ],
)
def test_an_event_stream_is_known_by_its_type(value: bytes, is_one: bool) -> None:
    head = read_head(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n" % value, method="GET")

    assert isinstance(head, Head)
    assert head.lines.is_event_stream is is_one


@pytest.mark.parametrize("case", BROKEN_CHUNKS)
def test_broken_chunks_are_an_error(case: str) -> None:
    with pytest.raises(FramingError):
        Chunked().feed(BROKEN_CHUNKS[case])


def test_chunks_end_with_their_trailers() -> None:
    body = b"5;name=value\r\nhello\r\n0\r\nExpires: never\r\n\r\n"
    framing = Chunked()

    assert framing.feed(body + b"HTTP/1.1 next") == len(body)
    assert framing.ended


def test_between_chunks_there_is_room_for_another() -> None:
    framing = Chunked()
    seen = []

    for byte in b"2\r\nhi\r\n0\r\n\r\n":
        seen.append((framing.is_between, framing.missing))
        framing.feed(bytes((byte,)))

    assert [at for at, (between, _) in enumerate(seen) if between] == [0, 7]
    assert [missing for _, missing in seen] == [0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0]


payloads = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


def _chunks(pieces: list[bytes]) -> bytes:
    return b"".join(b"%X\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def _split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(payloads, st.lists(st.integers(0, 10_000)), st.binary(max_size=9))
def test_any_split_of_chunks_gives_the_same(
    pieces: list[bytes], cuts: list[int], rest: bytes
) -> None:
    body = _chunks(pieces)
    scanning, unwrapping = Chunked(), Chunked()

    parts = _split(body + rest, cuts)
    taken = sum(scanning.feed(part) for part in parts)
    payload = b"".join(unwrapping.unwrap(part) for part in parts)

    assert taken == len(body)
    assert payload == b"".join(pieces)
    assert scanning.ended
    assert unwrapping.ended


@given(st.binary(max_size=60), st.lists(st.integers(0, 10_000)), st.integers(0, 60))
def test_any_split_of_a_counted_body_gives_the_same(
    data: bytes, cuts: list[int], length: int
) -> None:
    framing = Counted(length)

    payload = b"".join(framing.unwrap(part) for part in _split(data, cuts))

    assert payload == data[:length]
    assert framing.ended == (len(data) >= length)


@given(st.binary(max_size=200), st.lists(st.integers(0, 1000)))
def test_foreign_bytes_give_the_same_verdict_however_they_come(
    data: bytes, cuts: list[int]
) -> None:
    assert _verdict(Chunked(), [data]) == _verdict(Chunked(), _split(data, cuts))


@given(st.binary(max_size=300))
def test_foreign_bytes_as_a_head_are_a_head_or_an_error(data: bytes) -> None:
    try:
        head = read_head(b"HTTP/1.1 200 OK\r\n" + data + b"\r\n\r\n", method="GET")
    except FramingError:
        return
    assert isinstance(head, Head)


def _verdict(framing: Framing, parts: list[bytes]) -> tuple[bytes, bool, bool]:
    payload = b""
    try:
        for part in parts:
            payload += framing.unwrap(part)
    except FramingError:
        return b"", False, True
    return payload, framing.ended, False
