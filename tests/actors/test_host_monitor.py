"""The monitor of hosts: a real actor, real servers."""

import socket
import threading
from collections.abc import Iterator
from queue import Empty, Queue
from types import SimpleNamespace

import pykka
import pytest

from qmsup.actors import host_monitor, mishaps
from qmsup.actors.host_monitor import HostMonitor
from qmsup.actors.host_news import HostSeen, WatchHosts
from qmsup.ids import HostName
from qmsup.spec import HostSpec
from qmsup.units import Seconds
from qmsup.upstream.host_look import Looker
from tests.support.children import wait_until
from tests.support.servers import free_port
from tests.support.upstreams import upstream

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def _spec(name: str, where: str) -> HostSpec:
    return HostSpec(name=HostName(name), upstream=where)


@pytest.fixture
def news() -> Iterator["Queue[HostSeen]"]:
    yield Queue()
    pykka.ActorRegistry.stop_all()


def _start(news: "Queue[HostSeen]", *hosts: HostSpec) -> "pykka.ActorRef[HostMonitor]":
    return HostMonitor.start(hosts={host.name: host for host in hosts}, report=news.put)


def _next(news: "Queue[HostSeen]", name: str) -> HostSeen:
    while (seen := news.get(timeout=20)).sight.host != name:
        pass
    return seen


def test_every_host_is_looked_at_again_and_again(news: "Queue[HostSeen]") -> None:
    with upstream(lambda connection, _: connection.sendall(_OK)) as server:
        _start(news, _spec("well", server.where), _spec("gone", f"127.0.0.1:{free_port()}"))

        for _ in range(2):
            assert _next(news, "well").sight.is_healthy
            assert not _next(news, "gone").sight.is_healthy


def test_a_host_that_hangs_delays_no_other(news: "Queue[HostSeen]") -> None:
    ended = threading.Event()

    def hang(_connection: socket.socket, _: bytes) -> None:
        ended.wait(30)

    with (
        upstream(lambda connection, _: connection.sendall(_OK)) as well,
        upstream(hang) as hanging,
    ):
        _start(news, _spec("hanging", hanging.where), _spec("well", well.where))

        assert news.get(timeout=20).sight.host == "well"
        assert _next(news, "hanging").sight.is_healthy is False
        ended.set()


def test_another_configuration_is_taken_over(news: "Queue[HostSeen]") -> None:
    with upstream(lambda connection, _: connection.sendall(_OK)) as server:
        monitor = _start(news)
        with pytest.raises(Empty):
            news.get(timeout=0.2)

        one = _spec("one", server.where)
        monitor.tell(WatchHosts(hosts={one.name: one}))
        assert _next(news, "one").sight.is_healthy
        elsewhere = _spec("one", f"127.0.0.1:{free_port()}")
        monitor.tell(WatchHosts(hosts={one.name: elsewhere}))

        while _next(news, "one").sight.is_healthy:
            pass


def test_hosts_are_looked_at_again_after_a_bug(
    news: "Queue[HostSeen]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_monitor, "_EVERY", Seconds(0.05))
    mishaps.forget()
    with upstream(lambda connection, _: connection.sendall(_OK)) as server:
        with monkeypatch.context() as patch:
            patch.setattr(host_monitor, "threading", SimpleNamespace(Thread=lambda **_: 1 / 0))
            _start(news, _spec("well", server.where))
            wait_until(lambda: any(each.times > 2 for each in mishaps.told()))

        assert _next(news, "well").sight.is_healthy
        with monkeypatch.context() as patch:
            patch.setattr(Looker, "look", lambda _: 1 / 0)
            wait_until(lambda: any(each.doing == "a look" for each in mishaps.told()))
        while not news.empty():
            news.get()

        assert _next(news, "well").sight.is_healthy
    mishaps.forget()
