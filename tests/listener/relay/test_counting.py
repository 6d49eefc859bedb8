"""Prompts that seem too long, and hosts that count them: a relay at work, and a scheduler that refuses once."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory, TemporaryFile

import msgspec
import pytest

from qmsup.ids import HostName, RouteName
from qmsup.listener.relay.order import RelayOrder, Remote, Wayfaring
from qmsup.listener.relay.secured import Tls
from qmsup.wire.listening import Ask, Done, FromScheduler, Refused
from tests.support.certificates import certificate, needs_openssl, secure_upstream
from tests.support.granting import GrantingScheduler, grant
from tests.support.relaying import Relaying, order, read_until, relaying_with_scheduler
from tests.support.upstreams import Script, plain, saying, upstream

Both = tuple[Relaying, GrantingScheduler]
_BODY = json.dumps({"messages": [{"role": "user", "content": "x" * 400}]}).encode()


@pytest.fixture(scope="module")
def pair() -> Iterator[Both]:
    with (
        TemporaryDirectory(prefix="qm-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("QMSUP_RUNTIME_DIR", f"{folder}/run")
        with relaying_with_scheduler() as pair:
            yield pair


@pytest.fixture
def both(pair: Both) -> Both:
    """The same for all, and nothing was heard yet."""
    engine, scheduler = pair
    engine.until(lambda: engine.engine.held == 0)
    scheduler.heard.clear()
    return pair


def _routed(remote: Remote, wanted: RelayOrder | None = None) -> RelayOrder:
    way = Wayfaring(route=RouteName("r"), remotes={remote.name: remote}, tokens=100)
    return replace(wanted or order(_BODY), way=way)


def _refuses_what_is_estimated(scheduler: GrantingScheduler, host: str, where: str) -> None:
    """As a scheduler does for slots of 100 tokens."""

    def on_ask(ask: Ask) -> list[FromScheduler]:
        assert ask.routed is not None
        if ask.routed.is_counted and ask.routed.tokens < 100:
            return [msgspec.structs.replace(grant(ask, where), host=host)]
        return [
            Refused(
                request=ask.request,
                code="context_length_exceeded",
                message="too long",
                host="" if ask.routed.is_counted else host,
                upstream=where,
            )
        ]

    scheduler.on_ask = on_ask


def _counts(tokens: int) -> Script:
    def answer(connection: socket.socket, request: bytes) -> None:
        is_count = b"/tokenize HTTP/1.1" in request
        told = {"tokens": list(range(tokens))} if is_count else {"ok": True}
        connection.sendall(plain(json.dumps(told).encode()))

    return answer


def test_what_fits_when_it_is_counted_is_served(both: Both) -> None:
    engine, scheduler = both
    with upstream(_counts(99)) as host:
        remote = Remote(
            name=HostName("far"), upstream=host.where, path=b"/api", lines=b"X-Api-Key: k\r\n"
        )
        _refuses_what_is_estimated(scheduler, "far", host.where)
        with engine.hold(_routed(remote)) as client:
            said = read_until(client, b'{"ok": true}')

    assert said.startswith(b"HTTP/1.1 200 ")
    head, _, body = host.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/tokenize HTTP/1.1\r\n")
    assert b"X-Api-Key: k" in head
    assert json.loads(body) == {"content": "x" * 400, "model": "m", "add_special": True}
    assert host.requests[1].endswith(_BODY)


def test_a_child_of_this_box_counts_too_and_a_body_in_a_file_is_read(both: Both) -> None:
    engine, scheduler = both
    file = TemporaryFile()  # noqa: SIM115 - the relay closes it
    file.write(_BODY)
    with upstream(_counts(5)) as child:
        _refuses_what_is_estimated(scheduler, "local", child.where)
        unused = Remote(name=HostName("far"), upstream="far:80")
        with engine.hold(_routed(unused, order(file, length=len(_BODY)))) as client:
            read_until(client, b'{"ok": true}')

    assert json.loads(child.requests[0].partition(b"\r\n\r\n")[2])["content"] == "x" * 400


@needs_openssl
def test_a_host_behind_tls_counts_as_others_do(both: Both) -> None:
    engine, scheduler = both
    with secure_upstream(_counts(5)) as host:
        tls = Tls("127.0.0.1", str(certificate().file))
        _refuses_what_is_estimated(scheduler, "far", host.where)
        remote = Remote(name=HostName("far"), upstream=host.where, tls=tls)
        with engine.hold(_routed(remote)) as client:
            read_until(client, b'{"ok": true}')


NO_HELP: dict[str, Script] = {
    "as many": _counts(100),
    "another status": saying(plain(b'{"tokens": []}', status=b"404 Not Found")),
    "no JSON": saying(plain(b"{")),
    "no tokens": saying(plain(b'{"tokens": 5}')),
    "no object": saying(plain(b"[]")),
    "no answer": saying(b""),
}


@pytest.mark.parametrize("case", NO_HELP)
def test_where_that_is_no_help_the_client_is_refused(both: Both, case: str) -> None:
    engine, scheduler = both
    with upstream(NO_HELP[case]) as host:
        _refuses_what_is_estimated(scheduler, "far", host.where)
        remote = Remote(name=HostName("far"), upstream=host.where)
        with engine.hold(_routed(remote)) as client:
            said = read_until(client, b"context_length_exceeded")

        assert len(host.requests) == 1
    assert said.startswith(b"HTTP/1.1 400 ")


def test_a_host_whose_certificates_cannot_be_read_is_not_asked(both: Both) -> None:
    engine, scheduler = both
    _refuses_what_is_estimated(scheduler, "far", "127.0.0.1:1")
    tls = Tls("127.0.0.1", "/nowhere/ca.pem")
    remote = Remote(name=HostName("far"), upstream="127.0.0.1:1", tls=tls)

    with engine.hold(_routed(remote)) as client:
        read_until(client, b"context_length_exceeded")


def test_a_client_that_leaves_meanwhile_is_asked_for_no_more(both: Both) -> None:
    engine, scheduler = both
    with upstream(lambda connection, _: host.wait_for_client_to_leave(connection)) as host:
        _refuses_what_is_estimated(scheduler, "far", host.where)
        wanted = _routed(Remote(name=HostName("far"), upstream=host.where))
        with engine.hold(wanted):
            engine.until(lambda: bool(host.requests))
        engine.until(lambda: engine.engine.held == 0)

    own = [m for m in scheduler.heard if isinstance(m, Ask | Done) and m.request == wanted.request]
    assert [type(message) for message in own] == [Ask]


def test_of_a_flood_only_so_many_are_counted_at_once(both: Both) -> None:
    engine, scheduler = both
    with upstream(lambda connection, _: host.wait_for_client_to_leave(connection)) as host:
        _refuses_what_is_estimated(scheduler, "far", host.where)
        remote = Remote(name=HostName("far"), upstream=host.where)
        counted = [engine.hold(_routed(remote)) for _ in range(16)]
        engine.until(lambda: len(host.requests) == 16)

        with engine.hold(_routed(remote)) as client:
            read_until(client, b"context_length_exceeded")
        for each in counted:
            each.close()

    assert len(host.requests) == 16


def test_others_than_too_long_are_refused_at_once(both: Both) -> None:
    engine, scheduler = both
    scheduler.on_ask = lambda ask: [Refused(request=ask.request, code="no_host", message="none")]

    with engine.hold(_routed(Remote(name=HostName("far"), upstream="far:80"))) as client:
        read_until(client, b"no_host")


@pytest.mark.parametrize("is_counted_first", [True, False])
def test_a_host_that_gives_nothing_is_left_for_another_by_the_same_count(
    both: Both, *, is_counted_first: bool
) -> None:
    """Whichever of the two hosts the prompt seemed too long for."""
    engine, scheduler = both

    def hang_up(connection: socket.socket, request: bytes) -> None:
        if b"/tokenize" in request:
            _counts(5)(connection, request)

    with upstream(hang_up) as a, upstream(_counts(5)) as b:
        hosts = {HostName("a"): a.where, HostName("b"): b.where}

        def on_ask(ask: Ask) -> list[FromScheduler]:
            assert ask.routed is not None
            name = HostName("b" if ask.routed.tried else "a")
            if not ask.routed.is_counted and (is_counted_first or ask.routed.tried):
                return [
                    Refused(ask.request, "context_length_exceeded", "long", None, name, hosts[name])
                ]
            return [msgspec.structs.replace(grant(ask, hosts[name]), host=name)]

        scheduler.on_ask = on_ask
        remotes = {name: Remote(name=name, upstream=where) for name, where in hosts.items()}
        way = Wayfaring(route=RouteName("r"), remotes=remotes, tokens=100)
        with engine.hold(replace(order(_BODY), way=way)) as client:
            said = read_until(client, b'{"ok": true}')

    assert said.startswith(b"HTTP/1.1 200 ")
    assert sum(b"/tokenize" in request for request in (*a.requests, *b.requests)) == 1
