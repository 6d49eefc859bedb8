"""What a client sees while it waits, and what happens when it does not wait any longer."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "slow": fake("--name slow --event-interval 0.02", concurrencyLimit=1),
        "lazy": fake("--name lazy --load-seconds 1.5"),
        "never": fake("--name never --load-seconds 600"),
        "fails": fake("--name fails --load-seconds 0.5 --exit-code 3"),
        "mute": fake("--name mute --stall posts"),
        "bounded": fake("--name bounded --event-interval 0.02", concurrencyLimit=1, queueMax=1),
    }
    with serving(models, vramBudgetGB=4, sendLoadingState=True) as box:
        yield box


@pytest.fixture(autouse=True)
def _unloaded(box: Box) -> Iterator[None]:
    yield
    box.run("unload")
    until(lambda: set(box.states().values()) <= {"stopped", "failed"})


def _stats(box: Box, model: str) -> dict[str, int]:
    port = box.model(model)["port"]
    return dict(requests.get(f"http://127.0.0.1:{port}/stats", timeout=10).json())


def test_a_waiting_stream_is_told_its_place_and_then_that_its_model_loads(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        with RawStream(box, "lazy", max_tokens=3) as second, RawStream(box, "lazy") as third:
            second.until_seen(b": qm-status: waiting 1\n\n")
            third.until_seen(b": qm-status: waiting 2\n\n")
            first.leave()
            seen = second.until_seen(b"data: [DONE]")

    assert seen.startswith(b"HTTP/1.1 200")
    comments, data = seen.index(b": qm-status: loading\n\n"), seen.index(b"data: ")
    assert comments < data


def test_a_client_that_leaves_the_line_is_forgotten(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        with RawStream(box, "lazy") as second:
            second.until_seen(b": qm-status: waiting 1")
            assert box.model("lazy")["queued"] == 1
        until(lambda: box.model("lazy")["queued"] == 0)

    until(lambda: box.model("slow")["inflight"] == 0)
    assert box.states()["lazy"] == "stopped"


def test_a_silent_client_that_leaves_is_noticed_too(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        with RawStream(box, "slow", stream=False):
            until(lambda: box.model("slow")["queued"] == 1)
        until(lambda: box.model("slow")["queued"] == 0)


def test_a_load_that_nobody_waits_for_is_given_up_when_somebody_needs_the_room(box: Box) -> None:
    with RawStream(box, "never") as first:
        first.until_seen(b": qm-status: loading")
    until(lambda: box.model("never")["queued"] == 0)

    assert box.chat("slow", max_tokens=2).status_code == 200
    assert box.states()["never"] == "stopped"


def test_a_stream_whose_client_leaves_is_ended_at_the_child(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        assert _stats(box, "slow")["cancelled"] == 0

    until(lambda: _stats(box, "slow")["cancelled"] == 1)
    until(lambda: box.model("slow")["inflight"] == 0)


def test_a_client_that_leaves_a_child_that_says_nothing_is_noticed(box: Box) -> None:
    with RawStream(box, "mute", stream=False):
        until(lambda: box.model("mute")["inflight"] == 1)

    until(lambda: box.model("mute")["inflight"] == 0)


def test_who_does_not_stream_hears_nothing_before_its_answer(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        with (
            RawStream(box, "lazy", stream=False, max_tokens=2) as silent,
            RawStream(box, "lazy", max_tokens=2) as told,
        ):
            assert b"X-QM-Model-Loaded: 1" in told.until_seen(b": qm-status: waiting 2")
            first.leave()
            told.until_seen(b": qm-status: loading")
            assert silent.look() == b""
            seen = silent.until_seen(b"lazy1 ")

    assert seen.startswith(b"HTTP/1.1 200")
    assert b"Content-Type: application/json" in seen
    assert b"X-QM-Model-Loaded: 1" in seen
    assert b"qm-status" not in seen


def test_a_failure_after_the_head_is_one_event_and_the_end(box: Box) -> None:
    with RawStream(box, "fails") as stream:
        seen = stream.until_seen(b"\r\n0\r\n\r\n")

    assert b": qm-status: loading" in seen
    assert seen.count(b"data: ") == 1
    assert b'data: {"error":{' in seen
    assert b'"code":"model_load_failed"' in seen


def test_over_the_limit_requests_wait_and_are_served_in_turn(box: Box) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(RawStream(box, "slow", max_tokens=5)) for _ in range(5)]
        for stream in streams:
            stream.until_seen(b"data: [DONE]")

    assert (
        _stats(box, "slow")["most_open"] <= 2
    )  # the second is the one that asks for these figures


def test_past_its_queue_a_model_refuses_before_the_first_byte(box: Box) -> None:
    with RawStream(box, "bounded") as first:
        first.until_seen(b"bounded1 ")
        with RawStream(box, "bounded") as second:
            second.until_seen(b": qm-status: waiting 1")
            answer = box.chat("bounded", stream=True)

    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "queue_full"
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_request_with_a_deadline_does_not_wait_past_it(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        answer = requests.post(
            box.url("/v1/chat/completions"),
            json={"model": "slow", "messages": []},
            headers={"X-QM-Timeout-Ms": "200"},
            timeout=20,
        )

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "wait_timeout"


def test_unload_cuts_what_streams_so_that_the_client_can_tell(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        assert box.run("unload", "slow").returncode == 0
        seen = stream.until_end()

    assert b'"code": "model_unloaded"' in seen or b'"code":"model_unloaded"' in seen
    assert b"[DONE]" not in seen
    assert not seen.endswith(b"0\r\n\r\n")


def test_unload_drain_lets_what_streams_end(box: Box) -> None:
    with RawStream(box, "slow", max_tokens=30) as stream:
        stream.until_seen(b"slow1 ")
        assert box.run("unload", "slow", "--drain").returncode == 0
        seen = stream.until_seen(b"[DONE]")

    assert b"slow29 " in seen


def test_an_unload_refuses_who_waits_for_the_model(box: Box) -> None:
    with RawStream(box, "never") as waiting:
        waiting.until_seen(b": qm-status: loading")
        assert box.run("unload", "never").returncode == 0
        seen = waiting.until_seen(
            b"\r\n0\r\n\r\n"
        )  # the stream ends; the connection may serve again

    assert seen.count(b"data: ") == 1
    assert b"model_unloaded" in seen
