"""Thousands of requests that no client should send: each gets a sensible answer, and nothing is left behind."""

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from tests.support.box import Box, fake, serving, until
from tests.support.fuzzing import HALF_OPEN, Case, Fuzzer, answer_to, complaint, send

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]

SEED = int(os.environ.get("QMSUP_FUZZ_SEED", "20261130"))
MOST = int(os.environ.get("QMSUP_FUZZ_REQUESTS", "10000"))
_WITHIN = float(os.environ.get("QMSUP_FUZZ_SECONDS", "45"))
_CLIENTS = 24
_BROKEN = ("request.broken", "relay.broken", "worker.broken", "link.broken", "Traceback")


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    models = {
        "alpha": fake("--name alpha"),
        "bravo": fake("--name bravo", concurrencyLimit=2, queueMax=4),
        "org/deep:tag": fake("--name deep"),
        "filtered": fake(
            "--name filtered", filters={"stripParams": "stream", "setParams": {"max_tokens": 2}}
        ),
        "renamed": fake("--name renamed", useModelName="other"),
    }
    with serving(
        models,
        listeners={"main": {"workers": 2}},
        vramBudgetGB=64,
        maxBodyMB=2,
        sendLoadingState=True,
    ) as box:
        yield box


class _Clients:
    """All of them at once, each with cases of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._until = time.monotonic() + _WITHIN
        self._left = MOST
        self._lock = threading.Lock()
        self.statuses: Counter[str] = Counter()
        self.complaints: list[str] = []

    def run(self) -> int:
        """Returns how many requests were sent."""
        threads = [
            threading.Thread(target=self._one, args=(Fuzzer(SEED + n),)) for n in range(_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return MOST - self._left

    def _one(self, fuzzer: Fuzzer) -> None:
        while time.monotonic() < self._until:
            with self._lock:
                if not self._left:
                    return
                self._left -= 1
            case = fuzzer.case()
            self._judge(case, send(case, self._port))

    def _judge(self, case: Case, said: bytes) -> None:
        answer = answer_to(case, said)
        wrong = complaint(case, said)
        with self._lock:
            self.statuses["none" if answer is None else str(answer.status)] += 1
            if wrong:
                self.complaints.append(
                    f"{wrong}\n  {case.manner} {case.data[:600]!r}\n  {said[:600]!r}"
                )


def test_whatever_is_sent_is_answered_in_words_and_leaves_nothing_behind(box: Box) -> None:
    for model in ("alpha", "bravo"):
        assert box.chat(model).status_code == 200
    workers = _workers(box)
    clients = _Clients(box.ports["main"])

    with ExitStack() as half_open:
        for beginning in HALF_OPEN * 6:
            where = ("127.0.0.1", box.ports["main"])
            half_open.enter_context(socket.create_connection(where)).sendall(beginning)
        sent = clients.run()

    seen = f"{sent} requests: {dict(clients.statuses.most_common())}"
    assert not clients.complaints, f"{seen}\n" + "\n".join(clients.complaints[:5])
    until(lambda: box.told("leases")["leases"] == [], what="no lease is left")
    until(lambda: box.told("queue")["queue"] == [], what="nobody waits")
    assert _workers(box) == workers
    assert [word for word in _BROKEN if word in box.log()] == []
    assert {"200", "400", "404", "413", "415", "431"} <= set(clients.statuses), seen
    assert requests.get(box.url("/health"), timeout=10).status_code == 200
    assert box.chat("alpha").status_code == 200


def _workers(box: Box) -> set[int]:
    return {child.pid for child in box.listener().children()}
