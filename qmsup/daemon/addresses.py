"""Addresses that are to be bound, tried before anything is started."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from qmsup.errors import ConfigError
from qmsup.spec import ControlSpec, ListenerSpec
from qmsup.transport import curve

_DO = "stop what uses it (ss -ltnp), or choose another address"


def problem_with(listener: ListenerSpec) -> str | None:
    """Why a listener's address cannot be had, and what to do; None when it can."""
    if (why := _why_not(listener.host, listener.port)) is None:
        return None
    where = f"{listener.host}:{listener.port}"
    return f"listeners.{listener.name}.bind: cannot listen on {where} ({why}): {_DO}"


def problems_with_control(control: ControlSpec | None) -> Iterator[str]:
    """Why control over TCP cannot be had, and what to do."""
    if control is None:
        return
    try:
        curve.read_keys(Path(control.secret_key))
    except ConfigError as error:
        yield f"control.curve.secretKey: {error}"
    where = urlsplit(control.endpoint)
    if (why := _why_not(where.hostname or "", where.port or 0)) is not None:
        yield f"control.bind: cannot listen on {control.endpoint} ({why}): {_DO}"


def _why_not(host: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None
