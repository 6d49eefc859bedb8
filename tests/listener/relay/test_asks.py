"""Requests of routes over a real engine: they are asked for again, elsewhere, until something of an answer came."""

from dataclasses import replace

from qmsup.ids import HostName, RouteName
from qmsup.listener.relay.asks import ask_of, granted_to, remote_of
from qmsup.listener.relay.order import RelayOrder, Remote, Wayfaring
from qmsup.units import Seconds
from qmsup.wire.listening import Routed
from tests.support.relaying import order

A, B = HostName("a"), HostName("b")


def _remote(name: HostName) -> Remote:
    return Remote(name=name, upstream=f"{name}:80", lines=b"X-Api-Key: %b\r\n" % name.encode())


def _routed() -> RelayOrder:
    way = Wayfaring(
        route=RouteName("r"), remotes={A: _remote(A)}, is_control=True, is_look=True, tokens=7
    )
    return replace(order(b"{}"), way=way, timeout=Seconds(1.5))


def test_an_ask_says_what_the_client_did() -> None:
    asked = ask_of(_routed(), (A, B))

    assert (asked.model, asked.timeout_ms, asked.hold_ms) == ("m", 1500, None)
    assert asked.routed == Routed(
        route=RouteName("r"), is_control=True, tokens=7, tried=(A, B), is_look=True
    )
    assert ask_of(order(b"")).routed is None
    counted = ask_of(_routed(), counted=5).routed
    assert counted is not None
    assert (counted.tokens, counted.is_counted) == (5, True)


def test_each_host_is_spoken_to_in_its_own_way() -> None:
    routed, peers = _routed(), replace(order(b""), peer=_remote(B))

    assert remote_of(routed, "a") == _remote(A)
    assert remote_of(routed, "b") is None
    assert remote_of(peers, "b") == _remote(B)
    assert remote_of(peers, "local") is None
    assert remote_of(order(b""), "a") is None


def test_a_peer_is_granted_without_a_scheduler() -> None:
    grant = granted_to(_remote(B), order(b""))

    assert (grant.upstream, grant.host, grant.waited_ms) == ("b:80", "b", 0)
