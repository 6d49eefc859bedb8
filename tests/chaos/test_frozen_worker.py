"""A listener's worker that is frozen while its request's turn comes and goes: the client does not learn of it."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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


def test_a_grant_that_came_and_lapsed_meanwhile_is_had_again(box: Box) -> None:
    (worker,) = box.listener("main").children()
    with ThreadPoolExecutor() as clients, box.chat("wanted", "side", **ENDLESS) as first:
        waiting = [clients.submit(_chat, box, streams) for streams in (False, True)]
        until(lambda: box.model("wanted")["queued"] == 2)
        try:
            worker.suspend()
            first.close()
            until(lambda: len(box.decisions("lease.lapsed")) == 2)
            assert box.chat("other", "side").status_code == 200  # where the model was
        finally:
            worker.send_signal(signal.SIGCONT)
        answers = [waits.result(30) for waits in waiting]

    assert [status for status, _ in answers] == [200, 200]
    assert all("wanted0 " in body for _, body in answers)
    assert not any("error" in body for _, body in answers)


def _chat(box: Box, streams: bool) -> tuple[int, str]:
    """To the end, as it came."""
    answer: requests.Response = box.chat("wanted", stream=streams)
    return answer.status_code, answer.text
