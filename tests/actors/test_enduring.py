"""An actor that goes on after a bug of ours."""

import threading
from collections.abc import Iterator

import pytest
from typing_extensions import override

from qmsup.actors import mishaps
from qmsup.actors.enduring import Enduring
from qmsup.actors.tree import end_actors


@pytest.fixture(autouse=True)
def all_ended() -> Iterator[None]:
    mishaps.forget()
    yield
    end_actors()
    mishaps.forget()


class _Divider(Enduring):
    """Divides by what it is told. All that it does goes wrong where a divisor is zero."""

    PART = "divider"

    def __init__(self, first: float = 1) -> None:
        super().__init__()
        self._first = first
        self.mended: list[object] = []
        self.ends = threading.Event()

    @override
    def begin(self) -> None:
        1 / self._first

    @override
    def take(self, message: object) -> object:
        assert isinstance(message, int)
        return 1 / message

    @override
    def mend(self, message: object) -> None:
        self.mended.append(message)
        if message == 0:
            raise LookupError

    @override
    def on_stop(self) -> None:
        self.ends.set()


def told() -> list[tuple[str, int, str]]:
    return [(each.part, each.times, each.doing) for each in mishaps.told()]


def test_what_is_told_after_a_bug_is_taken() -> None:
    ref = _Divider.start()

    ref.tell("no number")

    assert ref.ask(4) == 0.25
    assert told() == [("divider", 1, "str")]


def test_who_asked_what_broke_gets_none() -> None:
    assert _Divider.start().ask("no number") is None


def test_neither_a_beginning_nor_a_mending_that_breaks_ends_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ref = _Divider.start(0)
    ref.tell(0)

    assert ref.ask(2) == 0.5
    assert told() == [("divider", 3, "mend")]
    assert [vars(r)["qmsup_fields"]["doing"] for r in caplog.records] == ["begin", "int", "mend"]
    assert all(r.exc_info for r in caplog.records)


def test_one_that_breaks_again_and_again_fills_no_log_and_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ref = _Divider.start()
    for _ in range(500):
        ref.tell("no number")

    assert ref.ask(1) == 1.0
    assert told() == [("divider", 500, "str")]
    assert 10 <= len(caplog.records) < 20


def test_it_ends_as_others_do() -> None:
    ref = _Divider.start()
    ends = ref.proxy().ends.get()
    ref.stop()

    assert ends.is_set()
    assert not ref.is_alive()
