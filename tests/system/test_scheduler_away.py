"""What a port answers while the scheduler does not answer it, and when no more can wait."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "slow": fake("--name slow --event-interval 0.02", concurrencyLimit=1),
        "other": fake("--name other"),
    }
    scheduler = {"lineMax": 1}
    with serving(
        models,
        vramBudgetGB=4,
        sendLoadingState=True,
        schedulerGraceMs=1000,
        scheduler=scheduler,
    ) as box:
        yield box


@contextmanager
def frozen(box: Box) -> Iterator[None]:
    """The scheduler process does nothing meanwhile."""
    scheduler = psutil.Process(box.told("status")["pid"])
    scheduler.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        scheduler.send_signal(signal.SIGCONT)


def assert_away(answer: requests.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["error"]["code"] == "scheduler_unavailable"
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["X-QM-Request-Id"]


def test_health_and_pages_and_requests_say_that_it_is_away_and_streams_go_on(box: Box) -> None:
    with RawStream(box, "slow") as stream:
        stream.until_seen(b"slow1 ")
        with frozen(box):
            assert_away(requests.get(box.url("/health"), timeout=30))
            assert_away(requests.get(box.url("/running"), timeout=30))
            assert requests.get(box.url("/v1/models"), timeout=30).status_code == 200
            assert_away(box.chat("other"))
            assert_away(box.chat("other", stream=True))
            seen = len(stream.look())
            until(lambda: len(stream.look()) > seen, what="the stream goes on")
        until(lambda: requests.get(box.url("/health"), timeout=30).status_code == 200)
        until(lambda: box.model("slow")["inflight"] == 1, what="it is known again")


def test_past_the_line_everybody_is_refused_at_once(box: Box) -> None:
    with RawStream(box, "slow") as first:
        first.until_seen(b"slow1 ")
        with RawStream(box, "slow") as second:
            second.until_seen(b": qm-status: waiting 1")
            answer = box.chat("other", stream=True)

    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "line_full"
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["X-QM-Model"] == "other"
