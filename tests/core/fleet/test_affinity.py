"""Which host a conversation stays on, and when it moves."""

from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from qmsup.core.fleet.affinity import LeaseKey, RouteLeases, lease_key
from qmsup.core.fleet.chooser import HostView, best
from qmsup.ids import HostName, ModelId, RequestId, RouteName
from qmsup.spec import Affinity
from qmsup.units import Seconds

CONVO, CHAT = RouteName("convo"), ModelId("chat")
KEY = LeaseKey(CONVO, CHAT, "f-1")
A, B = HostName("a"), HostName("b")
MINUTE = 60.0


# A route's affinity, a request's conversation -> the conversation that its lease is under.
@pytest.mark.parametrize(
    ("affinity", "conversation", "leased"),
    [
        ("conversation", "f-1", "f-1"),
        ("conversation", "", ""),  # leases the route itself
        ("route", "f-1", ""),
        ("route", "", ""),
    ],
)
def test_the_key_of_a_lease(affinity: str, conversation: str, leased: str) -> None:
    key = lease_key(Affinity(affinity), CONVO, CHAT, conversation)

    assert key == ("convo", "chat", leased)


def views(**free: int) -> Mapping[HostName, HostView]:
    """Hosts with the model loaded, and their free slots."""
    return {
        HostName(host): HostView(is_healthy=True, is_loaded=True, free=n)
        for host, n in free.items()
    }


BOTH = views(a=1, b=9)


def find(
    leases: RouteLeases,
    *,
    at: float = 0,
    key: LeaseKey = KEY,
    hosts: str = "a b",
    seen: Mapping[HostName, HostView] = BOTH,
) -> HostName | None:
    names = [HostName(name) for name in hosts.split()]
    return leases.host_of(key, names, seen.get, now=Seconds(at * MINUTE))


def serve(leases: RouteLeases, request: str, host: HostName, *, at: float = 0) -> None:
    """A request that comes and goes at once."""
    leases.keep(KEY, host, RequestId(request), now=Seconds(at * MINUTE))
    leases.done(RequestId(request), now=Seconds(at * MINUTE))


def test_a_new_conversation_has_no_host_yet() -> None:
    assert find(RouteLeases()) is None


def test_a_conversation_stays_where_it_was_however_free_the_others_are() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)

    assert find(leases, at=1) == A


def test_another_conversation_another_model_another_route_has_a_lease_of_its_own() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)

    assert find(leases, key=LeaseKey(CONVO, CHAT, "f-2")) is None
    assert find(leases, key=LeaseKey(CONVO, ModelId("big"), "f-1")) is None
    assert find(leases, key=LeaseKey(RouteName("other"), CHAT, "f-1")) is None


@pytest.mark.parametrize(
    ("seen", "hosts"),
    [
        ({A: HostView(is_healthy=False, is_loaded=True), B: BOTH[B]}, "a b"),
        ({A: HostView(is_healthy=True, is_draining=True), B: BOTH[B]}, "a b"),
        ({B: BOTH[B]}, "a b"),
        (BOTH, "b"),
    ],
    ids=["unhealthy", "draining", "gone", "gone from the route"],
)
def test_it_moves_when_its_host_cannot_be_used(
    seen: Mapping[HostName, HostView], hosts: str
) -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)

    assert find(leases, at=1, seen=seen, hosts=hosts) is None
    serve(leases, "r2", B, at=1)
    assert find(leases, at=2) == B, "and does not move back"


@pytest.mark.parametrize(
    "there",
    [HostView(is_healthy=True, free=0, queued=9), HostView(is_healthy=True, can_serve=True)],
    ids=["full", "not loaded any more"],
)
def test_it_does_not_move_for_less(there: HostView) -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)

    assert find(leases, at=1, seen={A: there, B: BOTH[B]}) == A


def test_a_host_that_comes_back_before_anybody_moved_has_its_conversations_back() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)
    away = {A: HostView(is_healthy=False)}

    assert find(leases, at=1, seen=away) is None
    assert find(leases, at=2) == A


def test_it_ends_after_half_an_hour_of_idleness() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)

    assert find(leases, at=30) is None
    assert leases.hosts() == {}


def test_each_use_starts_the_half_hour_anew() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)
    serve(leases, "r2", A, at=29)

    assert find(leases, at=58) == A
    assert find(leases, at=87) == A, "asking alone does so too"
    assert find(leases, at=117) is None


def test_it_does_not_end_under_a_request_however_long_that_takes() -> None:
    leases = RouteLeases()
    leases.keep(KEY, A, RequestId("film"), now=Seconds(0))

    assert find(leases, at=300) == A
    leases.done(RequestId("film"), now=Seconds(300 * MINUTE))
    assert find(leases, at=329) == A


def test_of_two_requests_the_last_to_end_counts() -> None:
    leases = RouteLeases()
    leases.keep(KEY, A, RequestId("r1"), now=Seconds(0))
    leases.keep(KEY, A, RequestId("r2"), now=Seconds(0))
    leases.done(RequestId("r1"), now=Seconds(1 * MINUTE))

    assert find(leases, at=200) == A
    leases.done(RequestId("r2"), now=Seconds(200 * MINUTE))
    assert leases.next_expiry() == 230 * MINUTE


def test_a_second_end_does_not_start_the_half_hour_anew() -> None:
    leases = RouteLeases()
    serve(leases, "r1", A)
    leases.done(RequestId("r1"), now=Seconds(20 * MINUTE))

    assert leases.next_expiry() == 30 * MINUTE


def test_a_request_that_was_sent_elsewhere_leaves_nothing_behind() -> None:
    leases = RouteLeases()
    other = LeaseKey(CONVO, ModelId("big"), "f-1")
    leases.keep(KEY, A, RequestId("r1"), now=Seconds(0))
    leases.keep(other, B, RequestId("r1"), now=Seconds(0))

    assert leases.hosts() == {KEY: A, other: B}
    assert leases.expire(Seconds(30 * MINUTE)) == (KEY,)
    leases.done(RequestId("r1"), now=Seconds(40 * MINUTE))
    assert leases.expire(Seconds(70 * MINUTE)) == (other,)


def test_nothing_expires_where_nothing_is() -> None:
    leases = RouteLeases()

    assert leases.next_expiry() is None
    assert leases.expire(Seconds(1e9)) == ()


def test_what_is_idle_longest_ends_first() -> None:
    leases = RouteLeases()
    keys = [LeaseKey(CONVO, CHAT, f"f-{n}") for n in range(3)]
    for minute, key in enumerate(keys):
        leases.keep(key, A, RequestId(key.conversation), now=Seconds(0))
        leases.done(RequestId(key.conversation), now=Seconds(minute * MINUTE))

    assert leases.next_expiry() == 30 * MINUTE
    assert leases.expire(Seconds(31 * MINUTE)) == tuple(keys[:2])
    assert leases.next_expiry() == 32 * MINUTE


class LeasesMachine(RuleBasedStateMachine):
    """Conversations over three hosts that come and go, beside a model that looks at everything every time."""

    HOSTS = tuple(HostName(name) for name in "abc")
    KEYS = tuple(LeaseKey(CONVO, CHAT, name) for name in ("", "x", "y"))

    def __init__(self) -> None:
        super().__init__()
        self.leases = RouteLeases()
        self.seen = dict.fromkeys(self.HOSTS, HostView(is_healthy=True, is_loaded=True))
        self.now = Seconds(0.0)
        self.on: dict[LeaseKey, HostName] = {}
        self.used: dict[LeaseKey, Seconds] = {}
        self.requests: dict[RequestId, LeaseKey] = {}
        self.number = 0

    @rule(host=st.sampled_from(HOSTS), healthy=st.booleans(), free=st.integers(0, 3))
    def change(self, host: HostName, healthy: bool, free: int) -> None:
        self.seen[host] = HostView(is_healthy=healthy, is_loaded=True, free=free)

    @rule(minutes=st.sampled_from([1, 10, 29, 30]))
    def wait(self, minutes: int) -> None:
        self.now = Seconds(self.now + minutes * MINUTE)

    @rule(key=st.sampled_from(KEYS))
    def arrive(self, key: LeaseKey) -> None:
        kept = self.leases.host_of(key, self.HOSTS, self.seen.get, now=self.now)
        stays = self.lives(key) and self.seen[self.on[key]].is_healthy
        assert kept == (self.on[key] if stays else None)

        host = kept or best(self.HOSTS, self.seen.get)
        if host is None:
            return
        self.number += 1
        request = RequestId(f"r{self.number}")
        self.leases.keep(key, host, request, now=self.now)
        self.on[key], self.used[key], self.requests[request] = host, self.now, key

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if not self.requests:
            return
        request = data.draw(st.sampled_from(sorted(self.requests)))
        self.leases.done(request, now=self.now)
        self.used[self.requests.pop(request)] = self.now

    @invariant()
    def only_what_lives_is_kept(self) -> None:
        self.leases.expire(self.now)
        alive = {key: host for key, host in self.on.items() if self.lives(key)}
        assert self.leases.hosts() == alive

    @invariant()
    def the_next_to_expire_is_known(self) -> None:
        busy = set(self.requests.values())
        idle = [key for key in self.on if self.lives(key) and key not in busy]
        ends = [self.used[key] + 30 * MINUTE for key in idle]
        assert self.leases.next_expiry() == min(ends, default=None)

    def lives(self, key: LeaseKey) -> bool:
        if key not in self.on:
            return False
        return key in self.requests.values() or self.now < self.used[key] + 30 * MINUTE


TestLeaseHistories = LeasesMachine.TestCase
TestLeaseHistories.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
