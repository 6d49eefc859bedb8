"""A process that is frozen for long is cut off, and what it had not read is lost. Both sides come to agree again."""

import os
import signal
import threading
import time

import pytest
import requests

from tests.support.box import fake, serving, until
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

CUT_OFF_AFTER = 2.0
"""Seconds; the scheduler's heartbeats cut a silent connection after about 1.2."""


def test_a_refusal_that_a_frozen_worker_never_read_is_said_again() -> None:
    with serving({"m": fake("--event-interval 0.05", concurrencyLimit=1)}) as box:
        (worker,) = box.told("status")["listeners"]
        answers: list[requests.Response] = []
        with RawStream(box, "m", max_tokens=10_000) as stream:
            stream.until_seen(b"fake1 ")
            waiting = threading.Thread(target=lambda: answers.append(box.chat("m")))
            waiting.start()
            until(lambda: box.model("m")["queued"] == 1)

            os.kill(worker["pid"], signal.SIGSTOP)
            time.sleep(CUT_OFF_AFTER)
            assert box.run("unload", "m").returncode == 0
            os.kill(worker["pid"], signal.SIGCONT)

            waiting.join(20)
            assert b'"model_unloaded"' in answers[0].content
            assert b"[DONE]" not in stream.until_end()
        until(lambda: box.told("status")["listeners"] == [{**worker, "waiting": 0, "held": 0}])
        assert box.chat("m").status_code == 200
