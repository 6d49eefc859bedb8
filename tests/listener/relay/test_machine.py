import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.errors import Code, Refusal
from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.listener.placeholder import Placeholder
from qmsup.listener.relay.framing import Chunked, Head, read_head
from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.phases import Ending, Phase
from qmsup.wire.listening import Granted
from tests.support.upstreams import SSE_HEAD, chunked, plain

GRANT = Granted(
    request=RequestId("q-1"),
    epoch=Epoch(1),
    model=ModelId("m"),
    incarnation=Incarnation(1),
    upstream="127.0.0.1:1",
    was_ready=False,
    waited_ms=250,
)
FULL = Refusal(code=Code.LINE_FULL, message="too many wait")
STREAM = SSE_HEAD + chunked(b"data: 1\n\n", b"data: [DONE]\n\n")


def exchange(
    *,
    is_http11: bool = True,
    keeps_alive: bool = True,
    streaming: bool = False,
    method: str = "POST",
) -> Exchange:
    order = RelayOrder(
        request=RequestId("q-1"), model=ModelId("m"), method=method, head=b"", body=b""
    )
    return Exchange(
        order,
        is_http11=is_http11,
        keeps_alive=keeps_alive,
        placeholder=Placeholder(remarks=False) if streaming else None,
    )


def granted(**options: bool) -> Exchange:
    ours = exchange(**options)  # type: ignore[arg-type]  # method is not among them
    ours.granted(GRANT)
    return ours


def closed(ours: Exchange) -> bytes:
    """What is said when the upstream's connection ends."""
    said = ours.upstream_closed()
    return ours.upstream_lost("it broke off") if said is None else said


def split(answer: bytes) -> tuple[bytes, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def error_code(event: bytes) -> str:
    return str(json.loads(event.strip().removeprefix(b"data: "))["error"]["code"])


def payload_of(body: bytes) -> tuple[bytes, bool]:
    framing = Chunked()
    return framing.unwrap(body), framing.ended


# ---- a plain answer


def test_an_answer_passes_with_our_headers_and_the_connection_lives_on() -> None:
    ours = granted()

    head, body = split(ours.receive(plain(b"hello")))

    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    assert b"X-QM-Model-Loaded: 1" in head
    assert b"X-QM-Wait-Ms: 250" in head
    assert body == b"hello"
    assert (ours.phase, ours.ending, ours.outcome) == (Phase.DONE, Ending.KEEP, "finished")
    assert ours.status == 200
    assert ours.served


@pytest.mark.parametrize("status", [b"400 Bad Request", b"503 Loading", b"301 Moved"])
def test_an_error_of_the_child_passes_and_counts_as_failed(status: bytes) -> None:
    ours = granted()

    said = ours.receive(plain(b"{}", status=status))

    assert said.startswith(b"HTTP/1.1 " + status)
    assert (ours.phase, ours.ending, ours.outcome) == (Phase.DONE, Ending.KEEP, "failed")


@given(st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from([STREAM, plain(b"abc" * 9)]))
def test_any_split_of_an_answer_gives_the_client_the_same(cuts: list[int], answer: bytes) -> None:
    whole, parts = granted(), granted()
    places = sorted({0, len(answer), *(cut % len(answer) for cut in cuts)})

    said = b"".join(parts.receive(answer[a:b]) for a, b in itertools.pairwise(places))

    assert said == whole.receive(answer)
    assert (parts.phase, parts.ending) == (whole.phase, whole.ending) == (Phase.DONE, Ending.KEEP)


GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n"
SHOWN = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize(
    ("interim", "passed"),
    [(GO_ON, b""), (HINTS, SHOWN), (GO_ON + HINTS + GO_ON + HINTS, SHOWN * 2)],
)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_interim_answers_pass_but_for_the_continue_that_the_client_never_asked_the_child_for(
    interim: bytes, passed: bytes, step: int
) -> None:
    ours = granted()
    answer = interim + plain(b"x")

    said = b"".join(ours.receive(answer[at : at + step]) for at in range(0, len(answer), step))

    assert said.startswith(passed + b"HTTP/1.1 200 OK")


def test_interim_answers_are_nothing_for_an_old_client_or_behind_a_placeholder() -> None:
    assert granted(is_http11=False).receive(HINTS) == b""

    behind = exchange(streaming=True)
    assert behind.loading(0.0).startswith(b"HTTP/1.1 200 OK")
    behind.granted(GRANT)
    assert behind.receive(HINTS) == b""


@pytest.mark.parametrize("interim", [GO_ON, HINTS])
def test_a_child_that_never_comes_to_its_answer_is_given_up(interim: bytes) -> None:
    ours = granted()
    said = b""

    for _ in range(65 * 1024 // len(interim)):
        said = ours.receive(interim)
        if ours.phase is Phase.DONE:
            break

    assert said.startswith(b"HTTP/1.1 502")
    assert b"without end" in said
    assert ours.outcome == "failed"


def test_a_malformed_interim_answer_is_not_passed_on() -> None:
    assert granted().receive(b"HTTP/1.1 103 x\r\nA: b\nC: d\r\n\r\n").startswith(b"HTTP/1.1 502")


def test_an_answer_to_head_ends_with_its_head() -> None:
    ours = exchange(method="HEAD")
    ours.granted(GRANT)

    said = ours.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")

    assert said.endswith(b"\r\n\r\n")
    assert (ours.phase, ours.ending) == (Phase.DONE, Ending.KEEP)


def test_an_old_client_gets_the_payload_without_chunks_and_a_close() -> None:
    ours = granted(is_http11=False)

    head, body = split(ours.receive(STREAM))

    assert b"Transfer-Encoding" not in head
    assert b"Connection: close" in head
    assert body == b"data: 1\n\ndata: [DONE]\n\n"
    assert (ours.phase, ours.ending) == (Phase.DONE, Ending.CLOSE)


def test_an_old_client_that_keeps_alive_may_where_the_length_is_known() -> None:
    ours = granted(is_http11=False)

    head, _ = split(ours.receive(plain(b"x")))

    assert b"Connection: keep-alive" in head
    assert ours.ending is Ending.KEEP


def test_an_answer_without_length_ends_with_both_connections() -> None:
    ours = granted()

    said = ours.receive(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nabc")

    assert b"Connection: close" in said
    assert ours.phase is Phase.BODY
    assert closed(ours) == b""
    assert (ours.phase, ours.ending, ours.outcome) == (Phase.DONE, Ending.CLOSE, "finished")


# ---- a child that dies


def test_a_child_that_dies_before_its_first_byte_is_a_502_that_names_the_model() -> None:
    ours = granted()

    head, body = split(closed(ours))

    assert head.startswith(b"HTTP/1.1 502")
    assert json.loads(body)["error"]["code"] == "upstream_failed"
    assert "model m" in json.loads(body)["error"]["message"]
    assert (ours.ending, ours.outcome, ours.served) == (Ending.KEEP, "failed", False)


def test_a_child_that_dies_within_its_head_is_a_502() -> None:
    ours = granted()
    ours.receive(b"HTTP/1.1 200")

    assert ours.upstream_lost("reset").startswith(b"HTTP/1.1 502")
    assert ours.served


def test_foreign_bytes_are_a_502() -> None:
    ours = granted()

    assert ours.receive(b"SSH-2.0\r\n").startswith(b"HTTP/1.1 502")
    assert ours.phase is Phase.DONE


def test_chunks_that_are_broken_from_the_start_are_a_502() -> None:
    ours = granted()

    said = ours.receive(SSE_HEAD + b"zz\r\n")

    assert said.startswith(b"HTTP/1.1 502")
    assert error_code(split(said)[1]) == "upstream_failed"
    assert (ours.status, ours.ending, ours.outcome) == (502, Ending.KEEP, "failed")


def test_a_stream_that_breaks_ends_with_an_error_event_and_without_its_last_chunk() -> None:
    ours = granted()
    ours.receive(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))

    payload, ended = payload_of(closed(ours))

    assert error_code(payload) == "upstream_failed"
    assert not ended
    assert (ours.phase, ours.ending, ours.outcome) == (Phase.DONE, Ending.CLOSE, "failed")


def test_a_document_that_breaks_is_just_not_completed() -> None:
    ours = granted()
    ours.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")

    assert closed(ours) == b""
    assert (ours.ending, ours.outcome) == (Ending.CLOSE, "failed")


def test_where_only_the_close_would_end_it_the_connection_is_reset() -> None:
    old = granted(is_http11=False)
    old.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")

    assert closed(old) == b""
    assert old.ending is Ending.RESET


def test_broken_chunks_break_the_answer_off() -> None:
    ours = granted()
    ours.receive(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))

    said = ours.receive(b"zz\r\n")

    assert (ours.phase, ours.outcome) == (Phase.DONE, "failed")
    assert said == b"" or error_code(payload_of(said)[0]) == "upstream_failed"


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [
                    b"HTTP/1.1 200 OK\r\n",
                    b"Transfer-Encoding: chunked\r\n",
                    b"\r\n",
                    b"5\r\n",
                    b"0\r\n",
                ]
            ),
            st.sampled_from([b"Content-Type: text/event-stream\r\n", b"Content-Length: 7\r\n"]),
        ),
        max_size=20,
    ),
    st.booleans(),
    st.booleans(),
)
def test_whatever_a_child_sends_it_ends_once_and_never_as_whole_by_mistake(
    pieces: list[bytes], is_http11: bool, waits: bool
) -> None:
    ours = exchange(is_http11=is_http11, streaming=waits)
    said = ours.placed(1, 0.0)
    ours.granted(GRANT)

    for piece in filter(None, pieces):
        if ours.phase is not Phase.DONE:
            said += ours.receive(piece)
    if ours.phase is not Phase.DONE:
        said += closed(ours)

    assert ours.phase is Phase.DONE
    assert ours.outcome in {"finished", "failed"}
    head = read_head(said, method="POST")
    assert isinstance(head, Head)
    if ours.ending is Ending.KEEP:
        head.framing.feed(said[head.length :])
        assert head.framing.ended, "a connection that goes on has a whole answer behind it"


# ---- while it waits


def test_a_client_that_may_not_be_told_hears_nothing() -> None:
    ours = exchange()

    assert ours.placed(3, 0.0) == b""
    assert ours.phase is Phase.WAITING
    assert ours.loading(1.0) == b""
    assert ours.tick(60.0) == b""


def test_a_refusal_before_the_first_byte_is_a_plain_status() -> None:
    ours = exchange(streaming=True)

    head, body = split(ours.refused(FULL))

    assert head.startswith(b"HTTP/1.1 429")
    assert b"\r\nX-QM-Model: m\r\n" in head
    assert b"\r\nX-QM-Request-Id: " in head
    assert json.loads(body)["error"]["code"] == "line_full"
    assert (ours.phase, ours.ending) == (Phase.DONE, Ending.KEEP)


def test_the_first_word_brings_the_head_and_every_change_a_comment() -> None:
    ours = exchange(streaming=True)

    head, first = split(ours.placed(2, 0.0))
    again = ours.placed(2, 1.0)
    loading = ours.loading(2.0)

    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream")
    assert b"X-QM-Wait-Ms" not in head
    assert payload_of(first)[0] == b": qm-status: waiting 2\n\n"
    assert again == b""
    assert payload_of(loading)[0] == b": qm-status: loading\n\n"


def test_who_starts_with_loading_is_told_that_it_pays_for_it() -> None:
    head, _ = split(exchange(streaming=True).loading(0.0))

    assert b"X-QM-Model-Loaded: 1" in head


def test_a_comment_comes_at_least_every_ten_seconds_until_the_child_answers() -> None:
    ours = exchange(streaming=True)
    ours.placed(1, 0.0)

    waiting = ours.tick(9.5)
    ours.granted(GRANT)
    connecting = ours.tick(19.0)
    ours.receive(SSE_HEAD + chunked(b"data: 1\n\n", ended=False))

    assert payload_of(waiting)[0] == payload_of(connecting)[0] == b": qm-status: waiting 1\n\n"
    assert ours.tick(60.0) == b""


def test_behind_a_placeholder_the_childs_head_is_swallowed() -> None:
    ours = exchange(streaming=True)
    _, said = split(ours.loading(0.0))
    ours.granted(GRANT)

    for byte in STREAM:
        said += ours.receive(bytes((byte,)))

    payload, ended = payload_of(said)
    assert payload == b": qm-status: loading\n\ndata: 1\n\ndata: [DONE]\n\n"
    assert ended
    assert (ours.phase, ours.ending, ours.outcome) == (Phase.DONE, Ending.KEEP, "finished")


def test_behind_a_placeholder_an_error_of_the_child_is_an_event() -> None:
    ours = exchange(streaming=True)
    ours.loading(0.0)
    ours.granted(GRANT)

    said = ours.receive(plain(b'{"error": {"code": "x"}}', status=b"400 Bad Request"))

    payload, ended = payload_of(said)
    assert error_code(payload) == "x"
    assert ended
    assert (ours.outcome, ours.status, ours.ending) == ("failed", 200, Ending.KEEP)


def test_behind_a_placeholder_a_refusal_is_an_event_and_an_orderly_end() -> None:
    ours = exchange(streaming=True)
    ours.placed(1, 0.0)

    payload, ended = payload_of(ours.refused(FULL))

    assert error_code(payload) == "line_full"
    assert ended
    assert ours.ending is Ending.KEEP


def test_behind_a_placeholder_an_old_client_gets_bare_events() -> None:
    ours = exchange(streaming=True, is_http11=False)

    head, first = split(ours.placed(1, 0.0))
    ours.granted(GRANT)
    rest = ours.receive(STREAM)

    assert b"chunked" not in head
    assert first == b": qm-status: waiting 1\n\n"
    assert rest == b"data: 1\n\ndata: [DONE]\n\n"
    assert ours.ending is Ending.CLOSE


@pytest.mark.parametrize(
    "break_off",
    [
        closed,
        lambda ours: ours.upstream_lost("refused"),
        lambda ours: ours.cut(FULL),
    ],
    ids=["closed", "unreachable", "cut"],
)
def test_behind_a_placeholder_a_lost_child_is_an_event_without_a_last_chunk(
    break_off: Callable[[Exchange], bytes],
) -> None:
    ours = exchange(streaming=True)
    ours.loading(0.0)
    ours.granted(GRANT)

    payload, ended = payload_of(break_off(ours))

    assert b"error" in payload
    assert not ended
    assert ours.ending is Ending.CLOSE


# ---- the rest


def test_a_cut_before_the_answer_begins_is_its_plain_status() -> None:
    ours = granted()

    said = ours.cut(Refusal(code=Code.MODEL_UNLOADED, message="unloaded"))

    assert said.startswith(b"HTTP/1.1 503")
    assert ours.outcome == "failed"


def test_a_client_that_left_is_abandoned_from_any_phase() -> None:
    waiting, streaming = exchange(), granted()
    streaming.receive(STREAM[:-5])

    for ours in (waiting, streaming):
        ours.client_left()
        assert (ours.phase, ours.outcome) == (Phase.DONE, "abandoned")


def test_words_of_the_line_that_come_after_the_grant_are_not_for_the_client() -> None:
    ours = exchange(streaming=True)
    ours.granted(GRANT)

    assert ours.placed(1, 0.0) == b""
    assert ours.phase is Phase.CONNECTING


def test_what_a_client_gets_is_an_answer_itself() -> None:
    said = granted().receive(STREAM)

    head = read_head(said, method="POST")

    assert isinstance(head, Head)
    assert head.lines.is_event_stream
    assert payload_of(said[head.length :]) == (b"data: 1\n\ndata: [DONE]\n\n", True)
