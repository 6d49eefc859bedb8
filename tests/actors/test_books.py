"""The scheduler's books, by the real actor: workers tell of requests, clients ask for metrics, a feed tells of each."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from qmsup import places as where
from qmsup.actors import finished as finished_module
from qmsup.actors import mishaps
from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.transport.feed import FeedReader
from qmsup.units import Seconds
from qmsup.wire import codec
from qmsup.wire.feed import Item
from qmsup.wire.listening import Finished
from tests.support.scheduler_actor import (
    QUICK,
    ControlPeer,
    RunningScheduler,
    WorkerPeer,
    becomes,
    models_of,
    scheduler_of,
)

MAIN = ListenerName("main")


def finished(number: int = 1, **more: Any) -> Finished:
    told: dict[str, Any] = {"outcome": "finished", "status": 200, **more}
    return Finished(
        request=RequestId(f"q-{number}"),
        model=ModelId(told.pop("model", "m")),
        time=time.time(),
        ms=30,
        **told,
    )


def tell(worker: WorkerPeer, *requests: Finished) -> None:
    worker.say_bytes(codec.encode_activity(MAIN, requests))


def metrics(client: ControlPeer) -> dict[str, float]:
    text = client.body("metrics")["text"]
    return {
        f"{s.name}{dict(sorted(s.labels.items()))}".replace("{}", ""): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def requests_total(client: ControlPeer) -> dict[tuple[str, str, str], float]:
    families = text_string_to_metric_families(client.body("metrics")["text"])
    return {
        (s.labels["model"], s.labels["listener"], s.labels["code"]): s.value
        for family in families
        for s in family.samples
        if s.name == "qmsup_requests_total"
    }


def test_requests_are_counted_by_model_listener_and_status(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    tell(worker, finished(1), finished(2), finished(3, status=0, outcome="abandoned"))
    tell(worker, finished(4, model="slow", status=503, outcome="failed"))

    wanted = {("m", "main", "200"): 2, ("m", "main", "499"): 1, ("slow", "main", "503"): 1}
    becomes(lambda: requests_total(client), wanted)


def test_a_model_that_nobody_configured_has_no_name_in_the_metrics(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    tell(worker, *(finished(n, model=f"made-up-{n}", route="r", status=503) for n in range(5)))

    becomes(lambda: requests_total(client), {("", "main", "503"): 5})


def test_waits_first_bytes_and_tokens_are_measured(worker: WorkerPeer, client: ControlPeer) -> None:
    tell(
        worker,
        finished(1, wait_ms=40, ttft_ms=700, streaming=True, tokens_in=10, tokens_out=4),
        finished(2, wait_ms=0, ttft_ms=9000, streaming=False, tokens_in=1),
    )
    becomes(lambda: metrics(client).get("qmsup_queue_wait_seconds_count{'model': 'm'}"), 2)

    seen = metrics(client)

    assert seen["qmsup_queue_wait_seconds_sum{'model': 'm'}"] == 0.04
    assert seen["qmsup_ttft_seconds_count{'model': 'm'}"] == 1
    assert seen["qmsup_ttft_seconds_sum{'model': 'm'}"] == 0.7
    assert seen["qmsup_tokens_total{'direction': 'in', 'model': 'm'}"] == 11
    assert seen["qmsup_tokens_total{'direction': 'out', 'model': 'm'}"] == 4


def test_a_load_and_how_things_stand_are_measured(client: ControlPeer) -> None:
    client.body("load", model="m")

    seen = metrics(client)

    assert seen["qmsup_swaps_total{'model': 'm', 'reason': 'fits'}"] == 1
    assert seen["qmsup_load_seconds_count{'model': 'm'}"] == 1
    assert seen["qmsup_model_state{'model': 'm', 'state': 'ready'}"] == 1
    assert seen["qmsup_model_state{'model': 'm', 'state': 'stopped'}"] == 0
    assert seen["qmsup_model_state{'model': 'slow', 'state': 'stopped'}"] == 1
    assert seen["qmsup_inflight{'model': 'm'}"] == 0
    assert seen["qmsup_line_length"] == 0
    assert seen["qmsup_scheduler_epoch"] == 3
    assert seen["qmsup_host_up{'host': 'local'}"] == 1
    assert seen["qmsup_footprint_bytes{'kind': 'estimated', 'model': 'm'}"] == 3000 * 1024**2
    assert seen["qmsup_handle_seconds_count"] > 0


def test_leases_are_told_by_purpose(client: ControlPeer) -> None:
    client.body("lease", model="m", ttl_s=60, purpose="night's batch", owner="me", lease="l-1")

    assert metrics(client)["qmsup_leases_active{'purpose': \"night's batch\"}"] == 1


def test_the_last_requests_are_told_to_who_asks(worker: WorkerPeer, client: ControlPeer) -> None:
    tell(worker, *(finished(number, fingerprint="f") for number in range(1, 6)))
    becomes(lambda: len(client.body("activity")["activity"]), 5)

    rows = client.body("activity", limit=2)["activity"]

    assert [row["request"] for row in rows] == ["q-4", "q-5"]
    assert (rows[0]["listener"], rows[0]["fingerprint"]) == ("main", "f")
    assert client.body("activity", limit=0)["activity"] == []


def test_rows_come_to_the_disk(running: RunningScheduler, worker: WorkerPeer) -> None:
    tell(worker, finished(1, tokens_in=3), finished(2))

    def rows() -> list[tuple[object, ...]]:
        if not where.state_db().exists():
            return []
        with sqlite3.connect(where.state_db()) as db:
            found = db.execute("SELECT request, tokens_in FROM activity ORDER BY id").fetchall()
        db.close()
        return found

    becomes(rows, [("q-1", 3), ("q-2", None)])


def test_a_new_scheduler_knows_what_was_over_before_it_began(places: Path) -> None:
    with scheduler_of(models_of(QUICK), places) as former:
        worker, client = former.worker(), former.client()
        tell(worker, finished(1, tokens_in=3, streaming=True))
        becomes(lambda: len(client.body("activity")["activity"]), 1)

    with scheduler_of(models_of(QUICK), places) as scheduler:
        (row,) = scheduler.client("ctl-2").body("activity")["activity"]

    assert (row["request"], row["tokens_in"], bool(row["streaming"])) == ("q-1", 3, True)


def test_what_cannot_be_read_is_left_out_and_stops_nothing(
    worker: WorkerPeer, client: ControlPeer
) -> None:
    worker.say_bytes(b"\x93\xa8activity\xa4main\x91\x91\x01")

    tell(worker, finished(1))

    becomes(lambda: requests_total(client), {("m", "main", "200"): 1})


def test_who_looks_on_hears_of_each_request_but_not_who_asked(
    running: RunningScheduler, worker: WorkerPeer, client: ControlPeer, places: Path
) -> None:
    reader = FeedReader(where.feed_endpoint(), ["activity."])
    try:
        assert reader.await_greeting(Seconds(10.0))
        client.body("ping")
        heard: list[Item] = []

        def hears() -> bool:
            tell(worker, finished(len(heard) + 1, fingerprint="f", key="1"))
            heard.extend(reader.receive(Seconds(0.2)))
            return bool(heard)

        becomes(hears, True)
    finally:
        reader.close()

    item = heard[0]
    assert item.topic == "activity.m"
    assert item.body["outcome"] == "finished"
    assert not {"fingerprint", "key"} & set(item.body)


def test_a_bug_costs_the_books_what_they_were_told_then_and_is_said(
    worker: WorkerPeer, client: ControlPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mishaps.forget()
    with monkeypatch.context() as patch:
        patch.setattr(finished_module, "row_of", lambda *_: 1 / 0)
        patch.setattr(finished_module, "told_of", None)
        tell(worker, finished(1))
        becomes(lambda: [m["part"] for m in client.body("status")["mishaps"]], ["books"])
    tell(worker, finished(2))
    becomes(lambda: [row["request"] for row in client.body("activity")["activity"]], ["q-2"])
    assert requests_total(client) == {("m", "main", "200"): 1}

    with monkeypatch.context() as patch:
        patch.setattr(finished_module, "told_of", None)
        code, why = client.refusal("activity")

    assert (code, why[:14]) == ("internal_error", "a bug of qmsup")
    [mishap] = client.body("status")["mishaps"]
    assert (mishap["times"], mishap["doing"]) == (2, "ActivityAsked")
    mishaps.forget()
