"""Any history of requests and hosts: slots are exact, nobody waits beside a free one, and all comes to an end."""

from itertools import count

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from qmsup.core.fleet.chooser import HostView
from qmsup.core.fleet.dispatcher import Dispatcher
from qmsup.core.fleet.sights import Sight
from qmsup.core.fleet.wishes import Fails, Goes, Said, Stands, Wish
from qmsup.ids import HostName, ModelId, RequestId, RouteName, WorkerId
from qmsup.spec import HostSpec, RouteSpec, SlotsSpec, Spec
from qmsup.units import Seconds

CHAT, WORKER = ModelId("chat"), WorkerId("w")
HOSTS = [HostName(name) for name in "abc"]
PARALLEL, QUEUE = 2, 3
_SLOTS = SlotsSpec(parallel=PARALLEL, queue_max=QUEUE)
_ROUTE = RouteSpec(name=RouteName("r"), hosts=tuple(HOSTS))
SPEC = Spec(
    models={},
    hosts={name: HostSpec(name=name, upstream=name, models={CHAT: _SLOTS}) for name in HOSTS},
    routes={_ROUTE.name: _ROUTE},
)


class Fleet(RuleBasedStateMachine):
    """What a worker believes, from what it is told alone, beside what the dispatcher counts."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Seconds(100.0)
        self.numbers = count()
        self.fleet = Dispatcher(SPEC, lambda _: HostView(is_healthy=False), self.now)
        self.at: dict[RequestId, HostName] = {}
        self.waiting: set[RequestId] = set()
        for host in HOSTS:
            self._hear(self.fleet.seen(self._sight(host, is_healthy=True), self.now))

    @rule(conversation=st.sampled_from(["", "f", "g"]), tried=st.sets(st.sampled_from(HOSTS)))
    def arrive(self, conversation: str, tried: set[HostName]) -> None:
        wish = Wish(
            request=RequestId(f"q{next(self.numbers)}"),
            worker=WORKER,
            route=_ROUTE.name,
            model=CHAT,
            conversation=conversation,
            tried=tuple(sorted(tried)),
            timeout=Seconds(3.0),
        )
        self._hear(self.fleet.ask(wish, self.now))

    @precondition(lambda self: self.at or self.waiting)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted({*self.at, *self.waiting})))
        self.at.pop(request, None)
        self.waiting.discard(request)
        self._hear(self.fleet.end(request, self.now))

    @rule(host=st.sampled_from(HOSTS), is_healthy=st.booleans())
    def look(self, host: HostName, is_healthy: bool) -> None:
        self._hear(self.fleet.seen(self._sight(host, is_healthy=is_healthy), self.now))

    @rule(host=st.sampled_from(HOSTS))
    def drain(self, host: HostName) -> None:
        self._hear(self.fleet.drain(host, self.now))

    @rule(host=st.sampled_from(HOSTS))
    def undrain(self, host: HostName) -> None:
        self.fleet.undrain(host)

    @rule(seconds=st.sampled_from([1.0, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now = Seconds(self.now + seconds)
        self._hear(self.fleet.work(self.now))

    @invariant()
    def both_count_the_same(self) -> None:
        held = [sum(at == host for at in self.at.values()) for host in HOSTS]
        assert held == [self.fleet.limiter.in_flight(host, CHAT) for host in HOSTS]
        assert self.fleet.counts(WORKER) == (len(self.waiting), len(self.at))
        queued = sum(self.fleet.limiter.queued(host, CHAT) for host in HOSTS)
        assert queued == len(self.waiting)

    @invariant()
    def no_host_has_more_than_it_takes_and_nobody_waits_beside_a_free_slot(self) -> None:
        for host in HOSTS:
            in_flight = self.fleet.limiter.in_flight(host, CHAT)
            queued = self.fleet.limiter.queued(host, CHAT)
            assert in_flight <= PARALLEL
            assert queued <= QUEUE
            assert not queued or in_flight == PARALLEL

    @override
    def teardown(self) -> None:
        self._hear(self.fleet.lost(WORKER, self.now))
        assert self.fleet.counts(WORKER) == (0, 0)
        assert [self.fleet.limiter.in_flight(host, CHAT) for host in HOSTS] == [0, 0, 0]

    def _hear(self, said: list[Said]) -> None:
        for one in said:
            request = one.wish.request
            match one:
                case Goes(host=host):
                    assert request not in self.at
                    self.waiting.discard(request)
                    self.at[request] = host
                case Stands():
                    self.waiting.add(request)
                case Fails():
                    self.waiting.discard(request)

    def _sight(self, host: HostName, *, is_healthy: bool) -> Sight:
        loaded = frozenset({CHAT}) if is_healthy else frozenset[ModelId]()
        return Sight(host=host, at=self.now, is_healthy=is_healthy, loaded=loaded)


TestFleet = Fleet.TestCase
