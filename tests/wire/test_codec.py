import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmsup.errors import PeerError
from qmsup.ids import Epoch, Incarnation, ListenerName, ModelId, RequestId, WorkerId
from qmsup.wire import bodies, codec, controlling, listening
from qmsup.wire.controlling import Question, Reply, Trouble
from qmsup.wire.listening import (
    Accepted,
    Ask,
    Beat,
    Configured,
    CutOff,
    Declined,
    Done,
    FromScheduler,
    FromWorker,
    Granted,
    Hello,
    Holding,
    Leave,
    Loading,
    Moved,
    Refused,
    Unwelcome,
    Waiting,
    Welcome,
)

texts = st.text(max_size=40)
requests = texts.map(RequestId)
models = texts.map(ModelId)
naturals = st.integers(0, 2**40)
incarnations = naturals.map(Incarnation)
maybe_ms = st.none() | naturals

waitings = st.builds(
    Waiting,
    requests,
    models,
    st.booleans(),
    maybe_ms,
    maybe_ms,
    maybe_ms,
    texts,
    naturals,
)
from_worker: st.SearchStrategy[FromWorker] = st.one_of(
    st.builds(
        Hello,
        st.just(listening.VERSION),
        texts.map(WorkerId),
        texts.map(ListenerName),
        naturals,
        st.lists(st.builds(Holding, requests, models, incarnations), max_size=3).map(tuple),
        st.lists(waitings, max_size=3).map(tuple),
    ),
    st.builds(Ask, requests, models, st.booleans(), maybe_ms, maybe_ms, maybe_ms, texts),
    st.builds(Leave, requests),
    st.builds(Accepted, requests),
    st.builds(Declined, requests),
    st.builds(Done, requests, texts, st.booleans()),
    st.builds(Beat, naturals, naturals, texts),
)
from_scheduler: st.SearchStrategy[FromScheduler] = st.one_of(
    st.builds(Welcome, st.just(listening.VERSION), naturals.map(Epoch)),
    st.builds(Configured, texts, texts),
    st.builds(
        Granted,
        requests,
        naturals.map(Epoch),
        models,
        incarnations,
        texts,
        st.booleans(),
        naturals,
    ),
    st.builds(Refused, requests, texts, texts, st.none() | st.floats(0, 1e6)),
    st.builds(CutOff, requests, texts, texts, st.booleans()),
    st.builds(Moved, st.lists(st.tuples(requests, naturals), max_size=5).map(tuple)),
    st.builds(Loading, requests),
    st.builds(Unwelcome, texts, st.booleans()),
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
questions = st.builds(
    Question,
    v=st.just(controlling.VERSION),
    id=texts,
    verb=texts,
    args=st.dictionaries(texts, documents, max_size=3),
)
replies = st.builds(
    Reply,
    v=st.just(controlling.VERSION),
    id=texts,
    ok=st.booleans(),
    body=documents,
    error=st.none() | st.builds(Trouble, code=texts, message=texts),
)
garbage = st.binary(max_size=200) | documents.map(msgspec.msgpack.encode)
DECODERS = [
    codec.decode_from_worker,
    codec.decode_from_scheduler,
    codec.decode_question,
    codec.decode_reply,
]


@given(from_worker)
def test_what_a_worker_writes_the_scheduler_reads(message: FromWorker) -> None:
    assert codec.decode_from_worker(codec.encode(message)) == message


@given(from_scheduler)
def test_what_the_scheduler_writes_a_worker_reads(message: FromScheduler) -> None:
    assert codec.decode_from_scheduler(codec.encode(message)) == message


@given(questions)
def test_a_question_is_read_as_it_was_written(question: Question) -> None:
    assert codec.decode_question(codec.encode_question(question)) == question


@given(replies)
def test_a_reply_is_read_as_it_was_written(reply: Reply) -> None:
    assert codec.decode_reply(codec.encode_reply(reply)) == reply


@given(from_worker | from_scheduler, questions, replies)
def test_control_and_listener_frames_are_told_apart_by_their_first_byte(
    message: FromWorker | FromScheduler, question: Question, reply: Reply
) -> None:
    assert not codec.is_control(codec.encode(message))
    assert codec.is_control(codec.encode_question(question))
    assert codec.is_control(codec.encode_reply(reply))


@given(garbage)
def test_foreign_bytes_give_a_peer_error_and_nothing_else(frame: bytes) -> None:
    for decode in DECODERS:
        with contextlib.suppress(PeerError):
            decode(frame)


@given(from_worker | from_scheduler, st.data())
def test_a_truncated_frame_gives_a_peer_error(
    message: FromWorker | FromScheduler, data: st.DataObject
) -> None:
    whole = codec.encode(message)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]

    with pytest.raises(PeerError):
        codec.decode_from_worker(part)
    with pytest.raises(PeerError):
        codec.decode_from_scheduler(part)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "frame",
    [b"\x91" * 5000 + b"\xc0", b"[" * 5000, b'{"args":' * 5000, b'{"v":' + b"9" * 9000 + b"}"],
    ids=["deep msgpack", "deep json", "deep args", "a number of 9000 digits"],
)
def test_a_frame_that_would_exhaust_a_reader_gives_a_peer_error(decode: Any, frame: bytes) -> None:
    with pytest.raises(PeerError):
        decode(frame)


def test_an_unknown_kind_is_named() -> None:
    frame = msgspec.msgpack.encode(["shout", "r1"])

    with pytest.raises(PeerError, match="a listener worker sent a message 'shout' that cannot"):
        codec.decode_from_worker(frame)


def test_a_bad_field_is_named() -> None:
    frame = msgspec.msgpack.encode(["ask", "r1", 7])

    with pytest.raises(PeerError, match=r"'ask' that cannot be read: .*`str`, got `int`"):
        codec.decode_from_worker(frame)


@pytest.mark.parametrize("document", [{}, 7, [], [7], "hello", None])
def test_what_is_no_array_with_a_kind_is_called_so(document: object) -> None:
    with pytest.raises(PeerError, match="the scheduler sent a frame that is no message array"):
        codec.decode_from_scheduler(msgspec.msgpack.encode(document))


def test_bytes_that_are_no_msgpack_are_called_so() -> None:
    with pytest.raises(PeerError, match="no msgpack"):
        codec.decode_from_worker(b"")


@pytest.mark.parametrize("extra", [(), ("a shape", "we do not know")])
def test_a_greeting_in_another_version_is_refused_in_words(extra: tuple[str, ...]) -> None:
    hello = msgspec.msgpack.encode(["hello", 2, "w-1-a", "main", 1, *extra])
    welcome = msgspec.msgpack.encode(["welcome", 2, *(extra or (1,))])

    with pytest.raises(PeerError, match=r"worker speaks version 2 .* version 1: restart both"):
        codec.decode_from_worker(hello)
    with pytest.raises(PeerError, match=r"scheduler speaks version 2 .* version 1: restart both"):
        codec.decode_from_scheduler(welcome)


def test_fields_that_a_newer_peer_adds_at_the_end_are_ignored() -> None:
    frame = msgspec.msgpack.encode(["leave", "r1", "because"])

    assert codec.decode_from_worker(frame) == Leave(RequestId("r1"))


@pytest.mark.parametrize(
    "frame",
    [b'{"v": 2, "id": "q1", "verb": "ps"}', b'{"v": 2, "question": "ps"}'],
)
def test_a_question_in_another_version_is_refused_in_words(frame: bytes) -> None:
    with pytest.raises(PeerError, match="control client speaks version 2 of the control protocol"):
        codec.decode_question(frame)


def test_a_reply_in_another_version_is_refused_in_words() -> None:
    with pytest.raises(PeerError, match="the scheduler speaks version 9 of the control protocol"):
        codec.decode_reply(b'{"v": 9, "id": "q1", "ok": true}')


def test_a_question_without_a_verb_says_so() -> None:
    with pytest.raises(PeerError, match="required field `verb`"):
        codec.decode_question(b'{"v": 1, "id": "q1"}')


def test_an_unreadable_question_is_refused_under_its_id() -> None:
    frame = b'{"v": 1, "id": "q1"}'
    with pytest.raises(PeerError) as caught:
        codec.decode_question(frame)

    reply = codec.refuse_unreadable(frame, caught.value)

    assert (reply.id, reply.ok) == ("q1", False)
    assert reply.error == Trouble(code="bad_request", message=str(caught.value))


@pytest.mark.parametrize("frame", [b"{", b'{"id": 7}', b"\xff"])
def test_a_question_without_an_id_is_refused_under_an_empty_one(frame: bytes) -> None:
    assert codec.refuse_unreadable(frame, PeerError("no")).id == ""


def test_a_question_without_end_is_not_read() -> None:
    frame = b'{"v": 1, "id": "q1", "verb": "ps", "args": {"x": "' + b"x" * 70_000 + b'"}}'
    with pytest.raises(PeerError, match="a question has at most 65536 bytes") as caught:
        codec.decode_question(frame)
    assert codec.refuse_unreadable(frame, caught.value).id == ""

    named = codec.encode_question(Question(v=1, id="q" * 257, verb="ps"))
    with pytest.raises(PeerError, match="the id of a question has at most 256 characters"):
        codec.decode_question(named)


def test_a_reply_holds_only_what_it_says() -> None:
    frame = codec.encode_reply(Reply(v=1, id="q1", ok=True))

    assert frame == b'{"v":1,"id":"q1","ok":true}'


def test_a_body_is_read_with_what_it_has() -> None:
    ps = codec.read_body({"models": [{"name": "chat", "hue": "blue"}]}, bodies.Ps)

    assert ps == bodies.Ps(models=(bodies.Model(name=ModelId("chat")),))


def test_a_body_of_another_shape_is_refused_in_words() -> None:
    with pytest.raises(PeerError, match=r"another Ps: Expected `array`, got `int`.*models"):
        codec.read_body({"models": 7}, bodies.Ps)


# ---- requests that are over


def test_requests_that_are_over_come_as_they_were_told() -> None:
    told = [
        listening.Finished(
            request=RequestId("q-1"),
            model=ModelId("m"),
            time=1_700_000_000.25,
            ms=12,
            outcome="finished",
            status=200,
            tokens_in=5,
        )
    ]

    message = codec.decode_from_worker(codec.encode_activity(ListenerName("main"), told))

    assert isinstance(message, listening.Activity)
    assert message.listener == "main"
    assert codec.decode_requests(message.requests) == tuple(told)


def test_what_is_no_request_is_refused_when_it_is_read() -> None:
    frame = msgspec.msgpack.encode(["activity", "main", [["q-1", "m", "yesterday"]]])

    message = codec.decode_from_worker(frame)

    assert isinstance(message, listening.Activity)
    with pytest.raises(PeerError, match="told of requests"):
        codec.decode_requests(message.requests)
