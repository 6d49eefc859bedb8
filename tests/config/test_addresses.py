"""Addresses: what a listener may bind, and where a child may listen."""

import pytest

from qmsup.config.addresses import clash, parse_bind, parse_upstream

BINDS = {
    "127.0.0.1:8080": ("127.0.0.1", 8080),
    "[::1]:80": ("::1", 80),
    "localhost:1": ("localhost", 1),
    "gpu-box.lan:65535": ("gpu-box.lan", 65535),
    "0.0.0.0:8080": ("0.0.0.0", 8080),
}


@pytest.mark.parametrize("bind", BINDS)
def test_host_and_port_are_read(bind: str) -> None:
    assert parse_bind(bind) == BINDS[bind]


BAD_BINDS = {
    "8080": "has no port",
    "": "has no port",
    ":8080": 'write "127.0.0.1:8080" for this box alone',
    "::1:80": "brackets",
    "[::g]:80": "no IPv6 address",
    "[127.0.0.1]:80": "no IPv6 address",
    "999.1.1.1:80": "no name or address",
    "a b:80": "no name or address",
    "unix:/x": "no number from 1 to 65535",
    "h:0": "port 0",
    "h:65536": "no number from 1 to 65535",
    "h:-1": "no number from 1 to 65535",
    "h:٣": "no number from 1 to 65535",
}


@pytest.mark.parametrize("bind", BAD_BINDS)
def test_what_cannot_be_bound_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match=BAD_BINDS[bind]):
        parse_bind(bind)


CLASHES = {
    ("127.0.0.1", "127.0.0.1"): True,
    ("127.0.0.1", "localhost"): True,
    ("127.0.0.1", "0.0.0.0"): True,
    ("10.0.0.1", "127.0.0.1"): False,
    ("A.lan", "a.lan"): True,
}


@pytest.mark.parametrize("hosts", CLASHES)
def test_two_binds_clash_on_one_port_of_one_host(hosts: tuple[str, str]) -> None:
    assert clash((hosts[0], 80), (hosts[1], 80)) is CLASHES[hosts]
    assert not clash((hosts[0], 80), (hosts[1], 81))


UPSTREAMS = {
    "http://127.0.0.1:${PORT}": "http://127.0.0.1:${PORT}",
    "http://localhost:9000/": "http://localhost:9000",
    "http://box": "http://box:80",
    "http://[::1]:9000": "http://[::1]:9000",
    "http://[::1]": "http://[::1]:80",
}


@pytest.mark.parametrize("proxy", UPSTREAMS)
def test_an_upstream_is_host_and_port(proxy: str) -> None:
    assert parse_upstream(proxy) == UPSTREAMS[proxy]


BAD_UPSTREAMS = {
    "https://x:1": "no plain http address|not a plain http address",
    "127.0.0.1:80": "not a plain http address",
    "http://x:1/v1": "more than host and port",
    "http://u:p@x:1": "more than host and port",
    "http://x:1?a=b": "more than host and port",
    "http://:80": "has no host",
    "http://${PORT}:80": "has no host",
    "http://x:${PORT}0": "no number",
    "http://x:0": "port 0",
    "http://x:y": "no number",
    "http://[x": "not a plain http address|no IPv6|brackets|Invalid",
}


@pytest.mark.parametrize("proxy", BAD_UPSTREAMS)
def test_what_is_no_upstream_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match=BAD_UPSTREAMS[proxy]):
        parse_upstream(proxy)
