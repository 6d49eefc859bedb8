import logging

import pytest

from qmsup.errors import Refusal
from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.listener.promises import Promises
from qmsup.wire.listening import Granted


class _Asker:
    """Makes further promises when it is granted, or fails."""

    def __init__(self, promises: Promises, *following: "_Asker", breaks: bool = False) -> None:
        self.promises = promises
        self.following = following
        self.breaks = breaks
        self.granted: list[str] = []
        self.cut: list[Refusal] = []

    def on_place(self, place: int, *, was_ready: bool | None) -> None:
        raise AssertionError(place)

    def on_loading(self) -> None:
        raise AssertionError

    def on_granted(self, grant: Granted) -> None:
        self.granted.append(grant.request)
        for number, asker in enumerate(self.following):
            self.promises.make(asker, _granted(f"{grant.request}-{number}"))
        if self.breaks:
            raise RuntimeError("on purpose")

    def on_refused(self, refusal: Refusal, count_at: object = None) -> None:
        raise AssertionError(refusal)

    def on_cut(self, refusal: Refusal, *, had_lapsed: bool = False) -> None:
        self.cut.append(refusal)


def _granted(name: str) -> Granted:
    return Granted(
        request=RequestId(name),
        epoch=Epoch(1),
        model=ModelId("m"),
        incarnation=Incarnation(1),
        upstream="127.0.0.1:1",
        was_ready=True,
        waited_ms=0,
    )


def test_a_promise_is_kept_later_and_once() -> None:
    promises = Promises()
    asker = _Asker(promises)
    promises.make(asker, _granted("a"))
    assert asker.granted == []

    promises.keep()
    promises.keep()

    assert asker.granted == ["a"]
    assert promises.drop(RequestId("a")) is None


def test_one_that_is_dropped_is_not_kept() -> None:
    promises = Promises()
    asker = _Asker(promises)
    promises.make(asker, _granted("a"))

    assert promises.drop(RequestId("a")) is asker
    promises.keep()

    assert asker.granted == []


def test_those_that_are_made_meanwhile_are_kept_too() -> None:
    promises = Promises()
    last = _Asker(promises)
    promises.make(_Asker(promises, last, last), _granted("a"))

    promises.keep()

    assert last.granted == ["a-0", "a-1"]


def test_who_fails_is_cut_and_the_others_begin(caplog: pytest.LogCaptureFixture) -> None:
    promises = Promises()
    broken, other = _Asker(promises, breaks=True), _Asker(promises)
    promises.make(broken, _granted("a"))
    promises.make(other, _granted("b"))

    with caplog.at_level(logging.ERROR):
        promises.keep()

    assert [refusal.code for refusal in broken.cut] == ["internal_error"]
    assert other.granted == ["b"]
    assert "link.broken" in caplog.text
