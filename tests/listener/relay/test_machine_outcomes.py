"""What an exchange reports: its outcome, whichever way its answer took, and whether it paid for a load."""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.errors import Code, Refusal
from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.listener.outcome import Dialect, Outcome
from qmsup.listener.placeholder import Placeholder
from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.phases import Phase
from qmsup.wire.listening import Granted
from tests.support.upstreams import SSE_HEAD, chunked, plain

GRANT = Granted(
    request=RequestId("q-1"),
    epoch=Epoch(1),
    model=ModelId("m"),
    incarnation=Incarnation(1),
    upstream="127.0.0.1:1",
    was_ready=True,
    waited_ms=0,
)
CALL = b'{"choices":[{"finish_reason":"tool_calls","index":0,"message":{}}]}'
TEXT = b'{"choices":[{"finish_reason":"stop","index":0,"message":{}}]}'
EVENTS = b"data: %b\n\ndata: [DONE]\n\n" % CALL


def exchange(
    dialect: Dialect = Dialect.CHAT, *, waited: bool = False, is_http11: bool = True
) -> Exchange:
    order = RelayOrder(
        request=RequestId("q-1"),
        model=ModelId("m"),
        method="POST",
        head=b"",
        body=b"",
        dialect=dialect,
    )
    ours = Exchange(
        order,
        is_http11=is_http11,
        keeps_alive=True,
        placeholder=Placeholder(remarks=False) if waited else None,
    )
    if waited:
        assert ours.placed(1, 0.0)
    ours.granted(GRANT)
    return ours


def closed(ours: Exchange) -> bytes:
    """What is said when the upstream's connection ends."""
    said = ours.upstream_closed()
    return ours.upstream_lost("it broke off") if said is None else said


ANSWERS = {
    "a call": (plain(CALL), Outcome.TOOL_CALLS),
    "a text": (plain(TEXT), Outcome.FINISHED),
    "a call in a stream": (SSE_HEAD + chunked(EVENTS), Outcome.TOOL_CALLS),
    "a call across chunks": (
        SSE_HEAD + chunked(*(bytes((byte,)) for byte in EVENTS)),
        Outcome.TOOL_CALLS,
    ),
    "an error in a stream": (
        SSE_HEAD + chunked(b"data: 1\n\n", b'data: {"error":{"code":500}}\n\n'),
        Outcome.FAILED,
    ),
    "an error status": (plain(CALL, status=b"500 Oops"), Outcome.FAILED),
    "compressed by name alone": (
        plain(TEXT, extra=b"Content-Encoding: identity\r\n"),
        Outcome.FINISHED,
    ),
    "no JSON": (plain(b"hello"), Outcome.UNKNOWN),
}


@pytest.mark.parametrize("waited", [False, True])
@pytest.mark.parametrize("is_http11", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_way_to_the_client_reports_the_same(
    name: str, *, waited: bool, is_http11: bool
) -> None:
    answer, outcome = ANSWERS[name]
    ours = exchange(waited=waited, is_http11=is_http11)

    ours.receive(answer)

    assert (ours.phase, ours.outcome) == (Phase.DONE, outcome)


@given(
    st.sampled_from(sorted(ANSWERS)), st.booleans(), st.lists(st.integers(0, 10_000), max_size=12)
)
def test_any_split_reports_the_same(name: str, waited: bool, cuts: list[int]) -> None:
    answer, outcome = ANSWERS[name]
    ours = exchange(waited=waited)
    places = sorted({0, len(answer), *(cut % len(answer) for cut in cuts)})

    for a, b in itertools.pairwise(places):
        ours.receive(answer[a:b])

    assert (ours.phase, ours.outcome) == (Phase.DONE, outcome)


@pytest.mark.parametrize(("waited", "outcome"), [(False, Outcome.UNKNOWN), (True, Outcome.FAILED)])
def test_what_is_compressed_is_not_read(outcome: Outcome, *, waited: bool) -> None:
    ours = exchange(waited=waited)

    said = ours.receive(plain(gzip.compress(CALL), extra=b"Content-Encoding: gzip\r\n"))

    assert (ours.phase, ours.outcome) == (Phase.DONE, outcome)
    assert ours.has_spoken is waited
    assert (b"upstream_failed" in said) is waited  # its client could not know what it is


def test_an_answer_that_its_connection_ends_is_read() -> None:
    ours = exchange()
    ours.receive(b"HTTP/1.1 200 OK\r\n\r\n" + CALL)

    closed(ours)

    assert ours.outcome == Outcome.TOOL_CALLS


def test_an_endpoint_without_calls_is_finished_whatever_it_says() -> None:
    ours = exchange(Dialect.NONE)

    ours.receive(plain(CALL))

    assert ours.outcome == Outcome.FINISHED


def test_what_follows_the_answer_has_no_say() -> None:
    ours = exchange()

    ours.receive(plain(TEXT) + CALL)

    assert ours.outcome == Outcome.FINISHED


def test_a_call_that_is_cut_off_has_failed() -> None:
    lost, cut = exchange(), exchange()
    for ours in (lost, cut):
        ours.receive(SSE_HEAD + chunked(EVENTS, ended=False))

    closed(lost)
    cut.cut(Refusal(code=Code.MODEL_UNLOADED, message="unloaded"))

    assert (lost.outcome, cut.outcome) == (Outcome.FAILED, Outcome.FAILED)


def test_a_client_that_left_has_abandoned_even_a_call() -> None:
    ours = exchange()
    ours.receive(SSE_HEAD + chunked(EVENTS, ended=False))

    ours.client_left()

    assert ours.outcome == Outcome.ABANDONED


@pytest.mark.parametrize(
    ("was_ready", "line"),
    [
        (True, b"X-QM-Model-Loaded: 0\r\n"),
        (False, b"X-QM-Model-Loaded: 1\r\n"),
        (None, b""),
    ],
)
def test_whether_it_pays_for_a_load_is_known_from_the_first_word_on(
    was_ready: bool | None,
    line: bytes,
) -> None:
    ours = Exchange(
        RelayOrder(request=RequestId("q-1"), model=ModelId("m"), method="POST", head=b"", body=b""),
        is_http11=True,
        keeps_alive=True,
        placeholder=Placeholder(remarks=False),
    )

    head = ours.placed(2, 0.0, was_ready=was_ready).partition(b"\r\n\r\n")[0] + b"\r\n"

    assert line in head
    assert (b"Model-Loaded" in head) is bool(line)
