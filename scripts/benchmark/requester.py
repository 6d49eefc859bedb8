"""A process that takes grants and gives them back as fast as it can: `python -m scripts.benchmark.requester ...`.

Each of its requesters has one request in the line at any time. It prints one line of JSON.
"""

import argparse
import json
import time

from qmsup.ids import ModelId, RequestId
from qmsup.wire.listening import Ask, Done, FromScheduler, FromWorker, Granted, Refused
from scripts.benchmark.figures import spread
from scripts.benchmark.standin import StandIn

_WARM_S = 0.5


class Requesters:
    """All requesters of one process, on one socket as a worker's clients are."""

    def __init__(self, endpoint: str, model: str, count: int) -> None:
        self._worker = StandIn(endpoint)
        self._model = ModelId(model)
        self._asked: dict[RequestId, int] = {}
        self.trips_us: list[float] = []
        self.refused = 0
        self._worker.send(*(self._next_ask() for _ in range(count)))

    def _next_ask(self) -> Ask:
        request = self._worker.request()
        self._asked[request] = time.monotonic_ns()
        return Ask(request=request, model=self._model)

    def run(self, end: float) -> None:
        """Goes on until then."""
        while time.monotonic() < end:
            answer: list[FromWorker] = []
            for message in self._worker.receive(0.1):
                answer += self._answer(message)
            if answer:
                self._worker.send(*answer)

    def _answer(self, message: FromScheduler) -> tuple[FromWorker, ...]:
        if isinstance(message, Granted):
            asked_at = self._asked.pop(message.request, None)
            if asked_at is not None:
                self.trips_us.append((time.monotonic_ns() - asked_at) / 1000)
            request = message.request
            # As a worker says it whose use was over within 20 ms: one word says both, accepted and done.
            return (Done(request=request, outcome="finished"), self._next_ask())
        if isinstance(message, Refused):
            self.refused += 1
            self._asked.pop(message.request, None)
            return (self._next_ask(),)
        return ()


def main() -> None:
    """`--endpoint E --model M --requesters N --seconds S`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--requesters", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    requesters = Requesters(given.endpoint, given.model, given.requesters)
    requesters.run(time.monotonic() + _WARM_S)
    requesters.trips_us.clear()
    began = time.monotonic()
    requesters.run(began + given.seconds)
    seconds = time.monotonic() - began
    trips = spread(requesters.trips_us)
    print(
        json.dumps(
            {
                "grants": trips.count,
                "per_s": trips.count / seconds,
                "p50_us": trips.p50,
                "refused": requesters.refused,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
