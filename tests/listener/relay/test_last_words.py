from pathlib import Path

from qmsup import child_ends
from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.listener.relay.last_words import LastWords
from qmsup.places import log_file
from qmsup.wire.listening import Granted

M = ModelId("m")


def grant(host: str = "local") -> Granted:
    return Granted(
        request=RequestId("q-1"),
        epoch=Epoch(1),
        model=M,
        incarnation=Incarnation(7),
        upstream="127.0.0.1:1",
        was_ready=True,
        waited_ms=0,
        host=host,
    )


def leave(incarnation: int, words: str) -> None:
    log = log_file(M)
    log.parent.mkdir(parents=True, exist_ok=True)
    child_ends.leave(log, Incarnation(incarnation), words)


def test_what_a_child_ended_of_is_waited_for(places: Path) -> None:
    leave(6, "another end")
    words = LastWords(grant(), 100.0)
    assert words.look(100.0) is None

    leave(7, "it was killed by SIGSEGV")

    assert words.look(100.02) == "it was killed by SIGSEGV"


def test_it_is_not_waited_for_without_end(places: Path) -> None:
    words = LastWords(grant(), 100.0)

    assert words.look(100.01) is None
    assert words.look(101.0) == ""


def test_of_another_box_nothing_is_waited_for(places: Path) -> None:
    assert LastWords(None, 100.0).look(100.0) == ""
    assert LastWords(grant(host="far"), 100.0).look(100.0) == ""
