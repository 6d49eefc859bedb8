"""How a request is addressed to a server on another machine."""

from dataclasses import replace

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.order import Remote, whole_head
from qmsup.listener.relay.secured import Tls
from qmsup.spec import ANYONE
from tests.support.relaying import order

_HEAD = b"POST /v1/chat?a=/b HTTP/1.1\r\nAccept: */*\r\n"
_KEY = b"Authorization: Bearer k\r\n"

ADDRESSED = [
    (b"", b"", _HEAD),
    (b"", _KEY, _HEAD + _KEY),
    (b"/api", _KEY, b"POST /api/v1/chat?a=/b HTTP/1.1\r\nAccept: */*\r\n" + _KEY),
]


@pytest.mark.parametrize(("path", "lines", "sent"), ADDRESSED)
def test_its_path_goes_before_and_its_key_with_the_others(
    path: bytes, lines: bytes, sent: bytes
) -> None:
    remote = Remote(name=HostName("far"), upstream="far:80", path=path, lines=lines)

    assert remote.addressed(_HEAD) == sent


HOSTS = [
    (None, "127.0.0.1:5800", b"127.0.0.1:5800"),
    (Remote(name=HostName("a"), upstream="far:80"), "far:80", b"far"),
    (Remote(name=HostName("a"), upstream="[::1]:9"), "[::1]:9", b"[::1]:9"),
    (Remote(name=HostName("a"), upstream="far:443", tls=Tls("far", ANYONE)), "far:443", b"far"),
    (Remote(name=HostName("a"), upstream="far:80", tls=Tls("far", ANYONE)), "far:80", b"far:80"),
]


@pytest.mark.parametrize(("remote", "where", "host"), HOSTS)
def test_the_host_is_named_without_a_port_that_goes_without_saying(
    remote: Remote | None, where: str, host: bytes
) -> None:
    assert whole_head(order(), remote, where).endswith(b"\r\nHost: %b\r\n\r\n" % host)


def test_what_must_not_be_compressed_is_asked_for_without_encodings() -> None:
    asked = replace(order(), head=_HEAD + b"Accept-Encoding: gzip, br\r\nAccept-Language: de\r\n")

    assert b"Accept-Encoding: gzip, br\r\n" in whole_head(asked, None, "a:1")
    assert whole_head(asked, None, "a:1", is_plain=True) == (
        _HEAD + b"Accept-Language: de\r\nHost: a:1\r\n\r\n"
    )
