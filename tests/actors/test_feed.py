"""The feed of a real scheduler actor, as somebody sees it who looks on."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors import feed as feed_module
from qmsup.actors import mishaps
from qmsup.actors.feed import FeedActor
from qmsup.ids import RequestId
from qmsup.transport.feed import FeedReader, FeedSocket
from qmsup.units import Seconds
from qmsup.wire.feed import Item
from qmsup.wire.listening import Done
from tests.support.children import wait_until
from tests.support.scheduler_actor import (
    EPOCH,
    PATIENCE,
    QUICK,
    RunningScheduler,
    models_of,
    scheduler_of,
)


@pytest.fixture
def running(places: Path) -> Iterator[RunningScheduler]:
    with scheduler_of(models_of(QUICK), places) as scheduler:
        yield scheduler


class _Onlooker:
    def __init__(self, *topics: str) -> None:
        self._reader = FeedReader(where.feed_endpoint(), topics)
        assert self._reader.await_greeting(Seconds(PATIENCE))
        self.seen: list[Item] = []

    def sees(self, wanted: Callable[[Item], bool]) -> Item:
        """Wait for an item; those before it are in `seen`."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for item in self._reader.receive(Seconds(0.1)):
                self.seen.append(item)
            for item in self.seen:
                if wanted(item):
                    return item
        raise AssertionError(f"not among {self.seen}")

    def close(self) -> None:
        self._reader.close()


def test_what_changes_is_told_as_it_changes(running: RunningScheduler) -> None:
    onlooker = _Onlooker("model.", "lease.")
    worker = running.worker()

    worker.takes_up("r-1")
    onlooker.sees(lambda i: i.topic == "model.m" and i.body["state"] == "ready")
    onlooker.sees(lambda i: i.topic == "lease.r-1" and i.body["model"] == "m")
    worker.say(Done(request=RequestId("r-1"), outcome="finished"))
    onlooker.sees(lambda i: i.topic == "lease.r-1" and i.body is None)

    for kind in ("model", "lease"):
        numbers = [item.seq for item in onlooker.seen if item.topic.startswith(kind)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert {item.epoch for item in onlooker.seen} == {EPOCH}
    onlooker.close()


def test_decisions_are_told_with_their_reasons(running: RunningScheduler) -> None:
    onlooker = _Onlooker("decision.")
    running.worker().takes_up("r-1")

    item = onlooker.sees(lambda i: i.topic == "decision.swap.started")

    assert item.body["model"] == "m"
    onlooker.close()


def test_who_asks_gets_the_state_and_the_numbers_it_goes_up_to(running: RunningScheduler) -> None:
    onlooker = _Onlooker("model.")
    running.worker().takes_up("r-1")
    onlooker.sees(lambda i: i.body["state"] == "ready" and i.body["inflight"] == 1)

    told = running.client().body("subscribe")

    assert told["state"]["model.m"]["state"] == "ready"
    assert told["state"]["lease.r-1"]["kind"] == "request"
    assert told["epoch"] == EPOCH
    assert told["endpoint"] == where.feed_endpoint()
    assert told["seq"]["model"] >= onlooker.seen[-1].seq
    assert any(d["decision"] == "swap.started" for d in told["decisions"])
    onlooker.close()


def test_a_feed_that_cannot_be_bound_is_told_and_the_box_serves(
    places: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[object] = []
    ref = FeedActor.start(
        endpoint=f"ipc://{places}/no/such/folder/f", epoch=EPOCH, tell=told.append
    )
    ref.stop()
    assert "feed.not_bound" in caplog.text
    assert told == []


def test_a_bug_costs_onlookers_one_look_and_who_asked_an_answer(
    running: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    mishaps.forget()
    monkeypatch.setattr(feed_module, "_TRIED_AGAIN_AFTER", Seconds(0.05))
    onlooker, client = _Onlooker("model."), running.client()
    with monkeypatch.context() as patch:
        patch.setattr(feed_module, "_kind_of", lambda _: 1 / 0)
        assert client.refusal("subscribe")[0] == "internal_error"
        patch.setattr(FeedSocket, "wanted", property(lambda _: 1 / 0))
        another = FeedReader(where.feed_endpoint(), ["lease."])
        wait_until(lambda: any(each.doing == "subscriptions" for each in mishaps.told()))
    assert [each["part"] for each in client.body("status")["mishaps"]] == ["feed"]

    assert another.await_greeting(Seconds(PATIENCE)), "when what hindered it was over"
    running.worker().takes_up("r-1")
    onlooker.sees(lambda i: i.topic == "model.m" and i.body["state"] == "ready")
    assert client.body("subscribe")["state"]["model.m"]["state"] == "ready"
    another.close()
    onlooker.close()
    mishaps.forget()
