"""Messages to frames and back (PROTOCOL.md). Whatever a peer sends, reading it gives a message or a PeerError.

Encoders and decoders are made once: making one costs more than using it a hundred times.
"""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec

from qmsup.errors import Code, PeerError
from qmsup.ids import ListenerName
from qmsup.wire import controlling, listening
from qmsup.wire.controlling import Question, Reply, Trouble
from qmsup.wire.listening import Activity, Finished, FromScheduler, FromWorker, Hello, Welcome

_Body = TypeVar("_Body", bound=msgspec.Struct)

_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What msgspec raises on foreign bytes: its own errors, text that is no UTF-8, and nesting without end."""

_packer = msgspec.msgpack.Encoder()
_from_worker = msgspec.msgpack.Decoder(FromWorker)
_from_scheduler = msgspec.msgpack.Decoder(FromScheduler)
_anything = msgspec.msgpack.Decoder()
_finished = msgspec.msgpack.Decoder(
    Annotated[tuple[Finished, ...], msgspec.Meta(max_length=listening.MOST_TOLD)]
)

_writer = msgspec.json.Encoder()
_question = msgspec.json.Decoder(Question)
_reply = msgspec.json.Decoder(Reply)


class _Envelope(msgspec.Struct):
    """As much of a control message as says who asked and in which version."""

    v: object = None
    id: object = None


_envelope = msgspec.json.Decoder(_Envelope)


def is_control(frame: bytes) -> bool:
    """Whether a frame is JSON of the control protocol. A msgpack array never starts with this byte."""
    return frame.startswith(b"{")


def encode(message: FromWorker | FromScheduler) -> bytes:
    """A message of the listener protocol as one frame."""
    return _packer.encode(message)


def decode_from_worker(frame: bytes) -> FromWorker:
    """Read what a listener worker sent.

    Raises:
        PeerError: it is no message of this protocol, or a greeting in another version of it.
    """
    try:
        message = _from_worker.decode(frame)
    except _UNREADABLE as e:
        raise _listening_error("a listener worker", frame, e) from e
    if type(message) is Hello and message.version != listening.VERSION:
        raise PeerError(_other_version("a listener worker", message.version))
    return message


def decode_from_scheduler(frame: bytes) -> FromScheduler:
    """Read what the scheduler sent to a listener worker.

    Raises:
        PeerError: it is no message of this protocol, or a welcome in another version of it.
    """
    try:
        message = _from_scheduler.decode(frame)
    except _UNREADABLE as e:
        raise _listening_error("the scheduler", frame, e) from e
    if type(message) is Welcome and message.version != listening.VERSION:
        raise PeerError(_other_version("the scheduler", message.version))
    return message


def encode_activity(listener: ListenerName, requests: Sequence[Finished]) -> bytes:
    """Requests that are over, as one frame."""
    return _packer.encode(
        Activity(listener=listener, requests=msgspec.Raw(_packer.encode(requests)))
    )


def decode_requests(requests: bytes | msgspec.Raw) -> tuple[Finished, ...]:
    """The requests that an `Activity` tells of.

    Raises:
        PeerError: they are none.
    """
    try:
        return _finished.decode(requests)
    except _UNREADABLE as e:
        raise PeerError(f"a listener worker told of requests what cannot be read: {e}") from e


def encode_question(question: Question) -> bytes:
    """A control question as one frame. It starts with `{`: see `is_control`."""
    return _writer.encode(question)


def encode_reply(reply: Reply) -> bytes:
    """A control answer as one frame."""
    return _writer.encode(reply)


def decode_question(frame: bytes) -> Question:
    """Read a control question.

    Raises:
        PeerError: it cannot be understood. `refuse_unreadable` makes the answer to that.
    """
    if len(frame) > controlling.LARGEST_QUESTION:
        raise PeerError(f"a question has at most {controlling.LARGEST_QUESTION} bytes")
    try:
        question = _question.decode(frame)
    except _UNREADABLE as e:
        raise _controlling_error("a control client", frame, e) from e
    if question.v != controlling.VERSION:
        raise PeerError(_other_control_version("a control client", question.v))
    if len(question.id) > controlling.LONGEST_ID:
        raise PeerError(f"the id of a question has at most {controlling.LONGEST_ID} characters")
    return question


def decode_reply(frame: bytes) -> Reply:
    """Read the scheduler's answer to a control question.

    Raises:
        PeerError: it cannot be understood.
    """
    try:
        reply = _reply.decode(frame)
    except _UNREADABLE as e:
        raise _controlling_error("the scheduler", frame, e) from e
    if reply.v != controlling.VERSION:
        raise PeerError(_other_control_version("the scheduler", reply.v))
    return reply


def read_body(body: object, kind: type[_Body]) -> _Body:
    """The body of an answer as one of `wire.bodies`.

    Raises:
        PeerError: it has another shape.
    """
    try:
        return msgspec.convert(body, kind)
    except _UNREADABLE as e:
        raise PeerError(f"the scheduler answered with another {kind.__name__}: {e}") from e


def refuse_unreadable(frame: bytes, error: PeerError) -> Reply:
    """The answer to a question that `decode_question` refused, under its id as far as that can be read."""
    asked = _Envelope() if len(frame) > controlling.LARGEST_QUESTION else _peek_envelope(frame)
    id_ = asked.id if isinstance(asked.id, str) else ""
    return refusal(id_, Code.BAD_REQUEST, str(error))


def refusal(question_id: str, code: str, message: str) -> Reply:
    """The answer to a question that says no."""
    trouble = Trouble(code=code, message=message)
    return Reply(v=controlling.VERSION, id=question_id, ok=False, error=trouble)


def _listening_error(sender: str, frame: bytes, error: Exception) -> PeerError:
    try:
        parts = _anything.decode(frame)
    except _UNREADABLE:
        return PeerError(f"{sender} sent a frame that is no msgpack: {error}")
    match parts:
        case ["hello" | "welcome", int(version), *_] if version != listening.VERSION:
            return PeerError(_other_version(sender, version))
        case [str(kind), *_]:
            return PeerError(f"{sender} sent a message {kind[:40]!r} that cannot be read: {error}")
        case _:
            return PeerError(f"{sender} sent a frame that is no message array: {error}")


def _controlling_error(sender: str, frame: bytes, error: Exception) -> PeerError:
    version = _peek_envelope(frame).v
    if isinstance(version, int) and version != controlling.VERSION:
        return PeerError(_other_control_version(sender, version))
    return PeerError(f"{sender} sent JSON that cannot be read: {error}")


def _peek_envelope(frame: bytes) -> _Envelope:
    try:
        return _envelope.decode(frame)
    except _UNREADABLE:
        return _Envelope()


def _other_version(sender: str, version: int) -> str:
    return (
        f"{sender} speaks version {version} of the listener protocol, this process version"
        f" {listening.VERSION}: restart both from one installation of qmsup"
    )


def _other_control_version(sender: str, version: int) -> str:
    return (
        f"{sender} speaks version {version} of the control protocol, this process version"
        f" {controlling.VERSION}: use the qmsup of the same installation"
    )
