"""Whatever happens in a worker, and in whatever order: each lease comes back once, and each request is told of once."""

import random
from collections import Counter

import pytest

from qmsup.ids import Epoch, Incarnation, ModelId, RequestId
from qmsup.listener.leases import Leases
from qmsup.wire.listening import Ask, Done, Granted, Lasts

_OUTCOMES = ("finished", "finished", "finished", "tool_calls", "failed", "abandoned")


class _Worker:
    """Requests that come, wait, are granted, end, or leave before they began; and what the scheduler hears."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.leases = Leases[RequestId]()
        self.now = 0.0
        self.names = 0
        self.asked: dict[RequestId, Ask] = {}
        self.promised: set[RequestId] = set()
        self.running: set[RequestId] = set()
        self.held: set[RequestId] = set()
        """As the scheduler knows them."""
        self.ended: set[RequestId] = set()
        self.told: Counter[RequestId] = Counter()

    def hear(self, *told: Done | Lasts | None) -> None:
        for message in told:
            match message:
                case Lasts(request=request):
                    assert request in self.running
                    self.held.add(request)
                case Done(request=lease, uses=uses):
                    self.held.remove(lease)
                    self.told.update([lease, *(use.request for use in uses)])
                case None:
                    pass

    def arrives(self) -> None:
        self.names += 1
        request = RequestId(f"r{self.names}")
        ask = Ask(
            request=request,
            model=ModelId(self.dice.choice("mn")),
            hold_ms=self.dice.choice((None, None, None, 0, 250)),
        )
        if (grant := self.leases.use(ask, request, self.now)) is None:
            self.asked[request] = ask
        else:
            assert (grant.request, grant.model) == (request, ask.model)
            self.promised.add(request)

    def turn_ends(self) -> None:
        """Promises are kept, and what is over comes back."""
        self.running |= self.promised
        self.promised.clear()
        if self.now >= self.leases.due:
            self.hear(*self.leases.overdue(self.now))

    def is_granted(self) -> None:
        if self.asked:
            _, ask = self.asked.popitem()
            grant = Granted(
                request=ask.request,
                epoch=Epoch(1),
                model=ask.model,
                incarnation=Incarnation(1),
                upstream="here",
                was_ready=True,
                waited_ms=0,
                lent_ms=self.dice.choice((0, 50, 50, 50)),
            )
            self.leases.add(ask, grant, ask.request, self.now)
            self.held.add(ask.request)
            self.running.add(ask.request)

    def ends(self) -> None:
        if self.running:
            request = self.dice.choice(sorted(self.running))
            outcome = self.dice.choice(_OUTCOMES)
            done = self.leases.end(request, outcome, served=outcome != "failed", now=self.now)
            self.running.remove(request)
            self.ended.add(request)
            self.hear(done)

    def leaves(self) -> None:
        if self.promised:
            self.leases.leave(self.promised.pop())

    def is_recalled(self) -> None:
        self.hear(*self.leases.recall())

    def check(self) -> None:
        leases = {holding.request for holding in self.leases.holdings()}
        assert leases == self.held, "both sides know the same ones"
        users = [user for name in leases if (user := self.leases.user_of(name)) is not None]
        assert sorted(users) == sorted(self.running | self.promised), "each has one of its own"


@pytest.mark.parametrize("seed", range(60))
def test_no_lease_and_no_request_is_lost_or_told_of_twice(seed: int) -> None:
    worker = _Worker(seed)
    steps = (worker.arrives, worker.arrives, worker.is_granted, worker.ends, worker.leaves)
    for _ in range(150):
        worker.dice.choice((*steps, worker.turn_ends, worker.turn_ends, worker.is_recalled))()
        worker.now += worker.dice.choice((0.0, 0.001, 0.01, 0.06))
        worker.check()

    worker.turn_ends()
    while worker.running:
        worker.ends()
    worker.is_recalled()

    assert not worker.held
    assert len(worker.leases) == 0
    assert worker.leases.due == float("inf")
    assert worker.told == Counter(worker.ended)
