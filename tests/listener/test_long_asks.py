"""Whoever waits for a load has a thread of the worker: the others are for everybody else."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from typing_extensions import override

from qmsup.listener import long_asks
from qmsup.units import Seconds
from tests.support.listener_app import MAIN, Answer, StandInLink, app_of, call, environ_of

LOAD = "/api/models/load/chat"


class _Slow(StandInLink):
    """Answers no `load` until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.loads = threading.Semaphore(0)

    @override
    def ask(self, verb: str, args: Mapping[str, object], timeout: Seconds) -> object:
        if verb == "load":
            self.loads.release()
            assert self.may.wait(10.0)
        return super().ask(verb, args, timeout)


def test_more_loads_than_a_worker_has_places_for_are_refused_and_pages_answered() -> None:
    link = _Slow()
    app = app_of(MAIN, link)

    def load() -> int:
        answer = call(app, environ_of("POST", LOAD))
        assert isinstance(answer, Answer)
        return answer.status

    with ThreadPoolExecutor(long_asks.MOST) as pool:
        loads = [pool.submit(load) for _ in range(long_asks.MOST)]
        for _ in loads:
            assert link.loads.acquire(timeout=10.0)

        assert load() == 429
        page = call(app, environ_of("GET", "/health"))
        link.may.set()

        assert isinstance(page, Answer)
        assert page.status == 200
        assert {done.result() for done in loads} == {200}
    assert load() == 200
