"""Addresses in a configuration: where a listener binds, where a child listens."""

import ipaddress
import re
from urllib.parse import urlsplit

PORT = "${PORT}"
"""A free port, picked at each start of a child."""
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_PORT_NUMBER = re.compile(r"[0-9]{1,5}")
HIGHEST_PORT = 65_535
_ANY = frozenset({"0.0.0.0", "::"})
_EXAMPLE = 'write HOST:PORT, for example "127.0.0.1:8080"'


def parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPV6]:PORT`.

    Raises:
        ValueError: what is wrong with it and what to write.
    """
    host, colon, port_text = bind.rpartition(":")
    if not colon:
        raise ValueError(f"has no port; {_EXAMPLE}")
    if host.startswith("[") and host.endswith("]"):
        if not _is_address(host[1:-1], 6):
            raise ValueError(f"{host} is no IPv6 address")
        return host[1:-1], _port(port_text)
    if ":" in host:
        raise ValueError('an IPv6 address stands in brackets, for example "[::1]:8080"')
    if not host:
        raise ValueError(
            f'has no host; write "127.0.0.1:{port_text}" for this box alone, "0.0.0.0:{port_text}" for all'
        )
    if not _is_host(host):
        raise ValueError(f"the host is no name or address; {_EXAMPLE}")
    return host, _port(port_text)


def _port(text: str) -> int:
    if not _PORT_NUMBER.fullmatch(text) or int(text) > HIGHEST_PORT:
        raise ValueError(f"the port is no number from 1 to {HIGHEST_PORT}; {_EXAMPLE}")
    if int(text) == 0:
        raise ValueError("port 0 would be another one at each start; write a number from 1 on")
    return int(text)


def _is_host(host: str) -> bool:
    if re.fullmatch(r"[0-9.]+", host):
        return _is_address(host, 4)
    return _HOST_NAME.fullmatch(host) is not None


def _is_address(host: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(host).version == version
    except ValueError:
        return False


def clash(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two binds cannot stand together: the same port, and the same host or one of them every host."""
    if one[1] != other[1]:
        return False
    hosts = {"127.0.0.1" if host == "localhost" else host.lower() for host, _ in (one, other)}
    return len(hosts) == 1 or bool(hosts & _ANY)


def parse_upstream(proxy: str) -> str:
    """`http://HOST:PORT` of a `proxy`, its port perhaps `${PORT}`.

    Raises:
        ValueError: what is wrong with it and what to write.
    """
    example = "write http://HOST:PORT, for example http://127.0.0.1:${PORT}"
    parts = urlsplit(proxy.replace(PORT, "1"))
    if parts.scheme != "http":
        raise ValueError(f"is not a plain http address; {example}")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"holds more than host and port; {example}")
    if not parts.hostname or PORT in proxy.rpartition(":")[0]:
        raise ValueError(f"has no host; {example}")
    netloc = proxy.split("://", 1)[1].rstrip("/")
    if netloc.endswith(f":{PORT}"):
        parse_bind(netloc.replace(PORT, "1"))
        return f"http://{netloc}"
    has_port = netloc.rpartition("]")[2].count(":") > 0
    parse_bind(netloc if has_port else f"{netloc}:80")
    return f"http://{netloc}" if has_port else f"http://{netloc}:80"
