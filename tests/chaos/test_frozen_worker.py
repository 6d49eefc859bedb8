"""A listener's worker that is frozen while its request's turn comes and goes: the client does not learn of it."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import requests

from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system

MODELS = {
    "wanted": fake("--name wanted --event-interval 0.05", concurrencyLimit=1),
    "other": fake("--name other"),
}
ENDLESS = {"stream": True, "max_tokens": 10_000}
LISTENERS = {"main": {"workers": 1}, "side": {"workers": 1}}


@pytest.fixture
def box() -> Iterator[Box]:
    """One model fits, and an offer is no offer any more before long."""
    with serving(
        MODELS,
        listeners=LISTENERS,
        vramBudgetGB=4,
        scheduler={"offerTimeoutMs": 300},
        sendLoadingState=True,
    ) as box:
        assert box.chat("wanted").status_code == 200
        yield box


@pytest.mark.parametrize("streams", [False, True])
def test_a_grant_that_came_and_lapsed_meanwhile_is_had_again(box: Box, streams: bool) -> None:
    (worker,) = box.listener("main").children()
    with ThreadPoolExecutor() as clients, box.chat("wanted", "side", **ENDLESS) as first:
        waits = clients.submit(_chat, box, streams)
        until(lambda: box.model("wanted")["queued"] == 1)
        try:
            worker.suspend()
            first.close()
            until(lambda: box.decisions("lease.lapsed"))
            assert box.chat("other", "side").status_code == 200  # where the model was
        finally:
            worker.send_signal(signal.SIGCONT)
        status, body = waits.result(30)

    assert status == 200
    assert "wanted0 " in body
    assert "error" not in body
    assert worker.status() != psutil.STATUS_ZOMBIE


def _chat(box: Box, streams: bool) -> tuple[int, str]:
    """To the end, as it came."""
    answer: requests.Response = box.chat("wanted", stream=streams)
    return answer.status_code, answer.text
