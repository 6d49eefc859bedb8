"""A process that takes grants and gives them back as fast as it can: `python -m scripts.benchmark.requester ...`.

Each of its requesters has one request in the line at any time. It prints one line of JSON.
"""

import argparse
import json
import time

from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.wire import codec
from qmsup.wire.listening import Ask, Done, Granted, Refused
from scripts.benchmark.figures import spread
from scripts.benchmark.standin import StandIn

_WARM_S = 0.5


class Requesters:
    """All requesters of one process, on one socket as a worker's clients are.

    They share the machine's cores with the scheduler that is measured, so each costs as little as it can: messages are
    put together from bytes that the codec made once, and only the request's id is taken out of a grant.
    """

    def __init__(self, endpoint: str, model: str, count: int) -> None:
        self._worker = StandIn(endpoint)
        sample = self._worker.request()
        ask = Ask(request=sample, model=ModelId(model))
        # As a worker says it whose use was over within 20 ms: one word says both, accepted and done.
        done = Done(request=sample, outcome="finished")
        self._ask_head, self._ask_tail = _around(codec.encode(ask), sample)
        self._done_head, self._done_tail = _around(codec.encode(done), sample)
        self._grant_head = _around(_a_grant(sample), sample)[0]
        self._length = len(sample)
        self._asked: dict[bytes, int] = {}
        self.trips_us: list[float] = []
        self.refused = 0
        now = time.monotonic_ns()
        self._worker.send_frames([self._next_ask(now) for _ in range(count)])

    def _next_ask(self, now: int) -> bytes:
        request = self._worker.request().encode()
        self._asked[request] = now
        return self._ask_head + request + self._ask_tail

    def run(self, end: float) -> None:
        """Goes on until then."""
        while time.monotonic() < end:
            if told := self._worker.receive_frames(0.1):
                self._answer(told)

    def _answer(self, told: list[bytes]) -> None:
        now = time.monotonic_ns()
        head, begin, end = (
            self._grant_head,
            len(self._grant_head),
            len(self._grant_head) + self._length,
        )
        answer: list[bytes] = []
        for frame in told:
            if frame.startswith(head):
                request = frame[begin:end]
                self.trips_us.append((now - self._asked.pop(request)) / 1000)
                answer.append(self._done_head + request + self._done_tail)
                answer.append(self._next_ask(now))
            elif isinstance(message := codec.decode_from_scheduler(frame), Refused):
                self.refused += 1
                self._asked.pop(message.request.encode(), None)
                answer.append(self._next_ask(now))
        self._worker.send_frames(answer)


def _around(message: bytes, request: RequestId) -> tuple[bytes, bytes]:
    """What stands before and after the id. Ids are of one length: only they differ between messages of a kind."""
    head, _, tail = message.partition(request.encode())
    return head, tail


def _a_grant(request: RequestId) -> bytes:
    grant = Granted(
        request=request,
        epoch=Epoch(1),
        model=ModelId("any"),
        incarnation=Incarnation(1),
        upstream="any",
        was_ready=True,
        waited_ms=0,
    )
    return codec.encode(grant)


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
