"""The limiter under histories that nobody would think of, beside a model that is too simple to be wrong."""

from dataclasses import dataclass, field

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from qmsup.core.fleet.limiter import Answer, Full, Granted, Heir, Limiter, Queued
from qmsup.ids import HostName, ModelId, RequestId
from qmsup.units import Seconds

HOST, MODEL = HostName("box"), ModelId("chat")
FEW = st.integers(min_value=0, max_value=4)


@dataclass
class Naive:
    """One pair, as two lists and the rules word for word."""

    parallel: int = 1
    queue_max: int = 0
    in_flight: list[RequestId] = field(default_factory=list)
    line: list[RequestId] = field(default_factory=list)

    def acquire(self, request: RequestId) -> str:
        if len(self.in_flight) < self.parallel:
            self.in_flight.append(request)
            return "granted"
        if len(self.line) >= self.queue_max:
            return "full"
        self.line.append(request)
        return f"place {len(self.line)}"

    def give_back(self, request: RequestId) -> RequestId | None:
        if request in self.line:
            self.line.remove(request)
            return None
        if request not in self.in_flight:
            return None
        before = len(self.in_flight)
        self.in_flight.remove(request)
        if before > self.parallel or not self.line:
            return None
        heir = self.line.pop(0)
        self.in_flight.append(heir)
        return heir

    def resize(self, parallel: int, queue_max: int) -> list[RequestId]:
        self.parallel, self.queue_max = parallel, queue_max
        heirs: list[RequestId] = []
        while self.line and len(self.in_flight) < parallel:
            heirs.append(self.line.pop(0))
            self.in_flight.append(heirs[-1])
        return heirs


class LimiterMachine(RuleBasedStateMachine):
    """One pair; time moves by one second with every rule."""

    def __init__(self) -> None:
        super().__init__()
        self.limiter = Limiter()
        self.naive = Naive()
        self.everybody: list[RequestId] = []
        self.since: dict[RequestId, Seconds] = {}
        self.now = Seconds(0.0)

    @rule(parallel=FEW, queue_max=FEW)
    def resize(self, parallel: int, queue_max: int) -> None:
        self.tick()
        heirs = self.limiter.configure(
            HOST, MODEL, parallel=parallel, queue_max=queue_max, now=self.now
        )

        assert [heir.request for heir in heirs] == self.naive.resize(parallel, queue_max)
        for heir in heirs:
            self.check_wait_of(heir)

    @rule()
    def forget(self) -> None:
        self.tick()
        heirs = self.limiter.unconfigure(HOST, MODEL, now=self.now)

        assert [heir.request for heir in heirs] == self.naive.resize(1, 0)
        assert self.limiter.free_slots(HOST) == 0

    @rule()
    def arrive(self) -> None:
        self.tick()
        request = self.new_request()
        answer = self.limiter.acquire(request, HOST, MODEL, now=self.now)

        assert _told(answer) == self.naive.acquire(request)
        self.since[request] = self.now

    @rule()
    def arrive_tracked(self) -> None:
        self.tick()
        request = self.new_request()
        self.limiter.track(request, HOST, MODEL)

        self.naive.in_flight.append(request)

    @precondition(lambda self: self.everybody)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """Anybody, at any time: waiting, in flight, refused or long gone."""
        self.tick()
        request = data.draw(st.sampled_from(self.everybody))
        heir = self.limiter.leave(request, now=self.now)

        assert (heir and heir.request) == self.naive.give_back(request)
        self.check_wait_of(heir)

    @precondition(lambda self: self.everybody)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """As above, but who waits has no slot to give back."""
        self.tick()
        request = data.draw(st.sampled_from(self.everybody))
        first_in_line = self.naive.line[:1]
        before = self.limiter.in_flight(HOST, MODEL)
        heir = self.limiter.release(request, now=self.now)

        if request in self.naive.line:
            assert heir is None
            return
        assert (heir and heir.request) == self.naive.give_back(request)
        if heir is not None:
            assert [heir.request] == first_in_line, "slots go out in order of arrival"
            assert self.limiter.in_flight(HOST, MODEL) == before, "a hand-over frees nothing"
        self.check_wait_of(heir)

    @precondition(lambda self: self.naive.line or self.naive.in_flight)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        self.tick()
        request = data.draw(st.sampled_from(self.naive.line + self.naive.in_flight))
        answer = self.limiter.acquire(request, HOST, MODEL, now=self.now)

        if request in self.naive.line:
            assert answer == Queued(place=self.naive.line.index(request) + 1)
        else:
            assert isinstance(answer, Granted)

    @invariant()
    def it_is_as_the_simple_model_has_it(self) -> None:
        assert self.limiter.waiting(HOST, MODEL) == tuple(self.naive.line)
        assert self.limiter.in_flight(HOST, MODEL) == len(self.naive.in_flight)
        assert set(self.limiter._pair_of) == {*self.naive.line, *self.naive.in_flight}

    @invariant()
    def nobody_waits_beside_a_free_slot(self) -> None:
        waiting = self.limiter.queued(HOST, MODEL)
        assert not waiting or self.limiter.in_flight(HOST, MODEL) >= self.naive.parallel
        assert not waiting or self.limiter.free_slots(HOST) == 0

    @invariant()
    def no_count_is_negative(self) -> None:
        assert self.limiter.in_flight(HOST, MODEL) >= 0
        assert self.limiter.free_slots(HOST) >= 0

    def new_request(self) -> RequestId:
        self.everybody.append(RequestId(f"r{len(self.everybody)}"))
        return self.everybody[-1]

    def check_wait_of(self, heir: Heir | None) -> None:
        if heir is not None:
            assert heir.waited == self.now - self.since[heir.request]

    def tick(self) -> None:
        self.now = Seconds(self.now + 1)

    @override
    def teardown(self) -> None:
        """When everybody has gone nothing is left, whatever happened."""
        for request in self.everybody:
            self.limiter.leave(request, now=self.now)
        self.limiter.unconfigure(HOST, MODEL, now=self.now)

        assert repr(self.limiter) == "<Limiter idle>"


def _told(answer: Answer) -> str:
    match answer:
        case Granted(waited=waited):
            assert waited == Seconds(0.0)
            return "granted"
        case Queued(place=place):
            return f"place {place}"
        case Full():
            return "full"


TestLimiterHistories = LimiterMachine.TestCase
TestLimiterHistories.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("tracked", range(8))
@pytest.mark.parametrize("parallel", range(1, 5))
def test_tracked_requests_hold_back_the_line(parallel: int, tracked: int) -> None:
    """Of t tracked ones over p slots, t - p have to end for nothing before one that waits gets a slot."""
    limiter = Limiter()
    limiter.configure(HOST, MODEL, parallel=parallel, queue_max=1, now=Seconds(0))
    for number in range(tracked):
        limiter.track(RequestId(f"t{number}"), HOST, MODEL)
    answer = limiter.acquire(RequestId("a"), HOST, MODEL, now=Seconds(0))

    ended = 0
    while isinstance(answer, Queued) and limiter.queued(HOST, MODEL):
        limiter.release(RequestId(f"t{ended}"), now=Seconds(0))
        ended += 1

    assert ended == (tracked - parallel + 1 if tracked >= parallel else 0)
