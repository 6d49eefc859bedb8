"""Whom it asks for its slots, and what it makes of an answer. The rest is seen where a process manager hangs."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from qmsup.actors import progress_watch
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.progress_watch import ProgressSaw, ProgressWatch
from qmsup.actors.running import Running
from qmsup.core.lifecycle.progress import ASK_EVERY
from qmsup.spec import Kind
from qmsup.units import Seconds
from qmsup.upstream.probe import Answer, Found, Probe
from tests.support.children import FIRST_PORT

START = Seconds(100.0)
ASKED = Seconds(START + ASK_EVERY)


def child(
    *flags: str, kind: Kind = Kind.LLAMA_SERVER, is_ours: bool = True, port: int = FIRST_PORT
) -> Running:
    launch = SimpleNamespace(
        argv=("llama-server", *flags), proves_port=is_ours, host="127.0.0.1", port=port
    )
    spec = SimpleNamespace(kind=kind)
    return cast("Running", SimpleNamespace(launch=launch, spec=spec, child=None))


@pytest.fixture
def watch() -> Iterator[ProgressWatch]:
    inbox = PollingInbox()
    made = ProgressWatch(inbox)
    yield made
    made.close()
    inbox.close()


def test_a_llama_server_is_asked_a_minute_after_it_got_ready(watch: ProgressWatch) -> None:
    running = child("-m", "x")
    watch.follow(running, START)
    watch.follow(running, Seconds(START + 5.0))

    assert watch.due == ASKED


@pytest.mark.parametrize(
    "running",
    [
        child(kind=Kind.GENERIC),
        child(kind=Kind.SD_SERVER),
        child("--sleep-idle-seconds", "60"),
        child("--sleep-idle-seconds=60"),
        child(is_ours=False),
        None,
    ],
    ids=["generic", "sd-server", "one that sleeps", "with =", "one elsewhere", "none"],
)
def test_nobody_else_is(watch: ProgressWatch, running: Running | None) -> None:
    watch.follow(running, START)

    assert watch.due is None
    assert watch.tend(ASKED) is None


class Silent:
    """A question that has no answer yet."""

    events = 1

    def __init__(self, *_: object) -> None:
        self.is_closed = False

    def look(self) -> None:
        pass

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def asked(watch: ProgressWatch, monkeypatch: pytest.MonkeyPatch) -> Silent:
    """The question under way."""
    monkeypatch.setattr(progress_watch, "Probe", Silent)
    watch.follow(child(), START)
    assert watch.tend(ASKED) is None
    return cast("Silent", watch._probe)


@pytest.mark.parametrize(
    ("found", "due"),
    [
        (Found.READY, 180.0),
        (Found.LOADING, 180.0),
        (Found.REFUSED, 180.0),
        (Found.OTHER_STATUS, None),
    ],
)
def test_an_answer_ends_the_question(
    watch: ProgressWatch, asked: Silent, found: Found, due: float | None
) -> None:
    answer = Answer(found=found, words="")

    watch.saw(ProgressSaw(cast("Probe", asked), answer), Seconds(ASKED + 20.0))

    assert watch.due == (None if due is None else due + 60.0)
    assert asked.is_closed


def test_an_answer_to_what_was_given_up_is_ignored(watch: ProgressWatch, asked: Silent) -> None:
    late = ProgressSaw(cast("Probe", asked), Answer(found=Found.READY, words=""))
    watch.follow(child(), ASKED)
    due = watch.due

    watch.saw(late, Seconds(ASKED + 1.0))

    assert asked.is_closed
    assert watch.due == due


def test_without_a_descriptor_it_is_asked_later(
    watch: ProgressWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(progress_watch, "Probe", none_left)
    watch.follow(child(), START)

    assert watch.tend(ASKED) is None
    assert watch.due == ASKED + ASK_EVERY
