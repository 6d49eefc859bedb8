import pytest

from qmsup.actors import finished
from qmsup.actors.finished import Finished
from qmsup.errors import PeerError
from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.wire import codec, listening

MAIN = ListenerName("main")
REQUEST = Finished(
    request=RequestId("q-1"),
    model=ModelId("m"),
    time=1.5,
    ms=3,
    outcome="finished",
    key="2",
    fingerprint="f-1",
)


def test_what_a_worker_sent_is_read() -> None:
    message = codec.decode_from_worker(codec.encode_activity(MAIN, [REQUEST]))

    assert isinstance(message, listening.Activity)
    assert finished.read(bytes(message.requests)) == (REQUEST,)


def test_what_is_none_is_refused() -> None:
    with pytest.raises(PeerError):
        finished.read(b"\x01")


def test_a_row_has_a_value_for_each_field() -> None:
    row = finished.row_of(MAIN, REQUEST)

    told = finished.told_of(row, to_all=False)
    assert told["listener"] == "main"
    assert (told["key"], told["fingerprint"], told["wait_ms"]) == ("2", "f-1", None)


def test_who_asked_is_told_to_the_operator_alone() -> None:
    told = finished.told_of(finished.row_of(MAIN, REQUEST), to_all=True)

    assert "fingerprint" not in told
    assert "key" not in told
    assert told["request"] == "q-1"
