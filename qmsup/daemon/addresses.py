"""Addresses that are to be bound, tried before anything is started."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from qmsup.errors import ConfigError
from qmsup.spec import ControlSpec, ListenerSpec
from qmsup.transport import curve

_DO = "stop what uses it (ss -ltnp), or choose another address"
_ELSEWHERE = {
    errno.EADDRNOTAVAIL: "choose an address of this machine (ip addr), or 0.0.0.0 for all it has",
    errno.EAFNOSUPPORT: "choose another address: this machine has none of that kind",
    errno.EACCES: "choose a port above 1023, or let qmsup have this one (AmbientCapabilities=CAP_NET_BIND_SERVICE)",
}
"""What to do where nobody uses it and it cannot be had all the same."""
_NO_NAME = "choose an address of this machine: that name has none"


def problem_with(listener: ListenerSpec) -> str | None:
    """Why a listener's address cannot be had, and what to do; None when it can."""
    if (trouble := _why_not(listener.host, listener.port)) is None:
        return None
    where = f"{listener.host}:{listener.port}"
    why, do = trouble
    return f"listeners.{listener.name}.bind: cannot listen on {where} ({why}): {do}"


def problems_with_control(control: ControlSpec | None) -> Iterator[str]:
    """Why control over TCP cannot be had, and what to do."""
    if control is None:
        return
    try:
        curve.read_keys(Path(control.secret_key))
    except ConfigError as error:
        yield f"control.curve.secretKey: {error}"
    where = urlsplit(control.endpoint)
    if (trouble := _why_not(where.hostname or "", where.port or 0)) is not None:
        why, do = trouble
        yield f"control.bind: cannot listen on {control.endpoint} ({why}): {do}"


def _why_not(host: str, port: int) -> tuple[str, str] | None:
    """Why it cannot be had, and what to do."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except TypeError:  # what bind makes of a name that cannot be encoded
        return "no name of a machine", _NO_NAME
    except socket.gaierror as error:
        return error.strerror or str(error), _NO_NAME
    except OSError as error:
        return error.strerror or str(error), _ELSEWHERE.get(error.errno or 0, _DO)
    return None
