"""Where the scheduler is that is asked, and what says who asks: this machine's socket, or another one's over TCP."""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from qmsup import places
from qmsup.errors import ConfigError, SchedulerUnavailableError
from qmsup.transport import curve
from qmsup.transport.doorkeeper import may_be_shut
from qmsup.transport.handshake import Stranger
from qmsup.units import Seconds

IPC = "ipc://"
TCP = "tcp://"
_HIGHEST_PORT = 65_535
_CONNECTS_WITHIN = Seconds(5.0)
"""How long a machine elsewhere may take to say whether somebody listens there."""
_OPENS_WITHIN = Seconds(3.0)
"""A scheduler that has sent a crowd away lets nobody in for a second."""
_KNOCKS_AGAIN_AFTER = Seconds(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The way to a scheduler.

    Attributes:
        endpoint: `ipc://PATH`, or `tcp://HOST:PORT`, which wants both keys.
        own_key: file of this client's secret key (`qmsup keys`).
        server_key: file of the scheduler's public key.
    """

    endpoint: str
    own_key: Path | None = None
    server_key: Path | None = None

    @property
    def is_remote(self) -> bool:
        """Whether it goes over a network."""
        return self.endpoint.startswith(TCP)

    def check(self) -> None:
        """See that it can be a way at all.

        Raises:
            ConfigError: the address is none, or a key is not named.
        """
        if self.endpoint.startswith(IPC):
            return
        _host_and_port(self.endpoint)
        if self.own_key is None or self.server_key is None:
            message = (
                f"{self.endpoint} wants keys: name your secret one with --key-file (`qmsup keys` makes it)"
                " and the scheduler's public one with --server-key"
            )
            raise ConfigError((message,))

    def secure(self) -> Callable[[Any], None] | None:
        """Sets up the keys on a socket; None where there are none.

        Raises:
            ConfigError: one cannot be read.
        """
        if not self.is_remote or self.own_key is None or self.server_key is None:
            return None
        keys, server = curve.read_keys(self.own_key), curve.read_public(self.server_key)

        def secure(socket: Any) -> None:
            curve.connect_with(socket, keys, server)
            curve.allow_ipv6(socket, self.endpoint)

        return secure

    def knock(self, timeout: Seconds) -> None:
        """See whether somebody listens there: a ZeroMQ socket would wait for ever without a word.

        Raises:
            SchedulerUnavailableError: nobody does.
        """
        try:
            if self.is_remote:
                where = _host_and_port(self.endpoint)
                socket.create_connection(where, min(timeout, _CONNECTS_WITHIN)).close()
            else:
                _knock_here(self.endpoint.removeprefix(IPC), min(timeout, _OPENS_WITHIN))
        except OSError as error:
            why = _reason_there(error) if self.is_remote else _reason_here(error)
            raise self.unavailable(why) from error

    def unavailable(self, what: str) -> SchedulerUnavailableError:
        """The error that says what is the matter with it."""
        return SchedulerUnavailableError(f"the scheduler at {self.endpoint} {what}")

    def unknown(self, stranger: Stranger) -> SchedulerUnavailableError:
        """The error that says who does not know whom."""
        if stranger is Stranger.WE:
            return self.unavailable(
                f"does not know the key in {self.own_key}: its public half belongs into the folder that"
                " `control.curve.clients` names there"
            )
        return self.unavailable(
            f"has not the key in {self.server_key}, or is no scheduler: fetch the public key of the pair that"
            " `control.curve.secretKey` names there, and look at the port"
        )


def here() -> Door:
    """The way to the scheduler of this machine and this environment."""
    return Door(endpoint=places.scheduler_endpoint())


def _host_and_port(endpoint: str) -> tuple[str, int]:
    wrong = ConfigError(
        (f"{endpoint!r} is no address of a scheduler: write tcp://HOST:PORT, or ipc://PATH",)
    )
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    beside = (parts.path, parts.query, parts.fragment, parts.username)
    if parts.scheme != "tcp" or not host or not port or port > _HIGHEST_PORT or any(beside):
        raise wrong
    return host, port


def _knock_here(path: str, opens_within: Seconds) -> None:
    give_up_at = time.monotonic() + opens_within
    while not _is_somebody_at(path):
        if time.monotonic() >= give_up_at or not may_be_shut(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        time.sleep(_KNOCKS_AGAIN_AFTER)


def _is_somebody_at(path: str) -> bool:
    """Whether a socket has this name; raises what else there is to be told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
        plain.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):  # a full backlog is somebody too
            try:
                plain.connect(path)
            except FileNotFoundError:
                return False
    return True


def _reason_here(error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "belongs to another user: run as the user that runs the scheduler"
    if error.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR}:
        return (
            "is not running: start it with `qmsup serve -c FILE`, or set QMSUP_RUNTIME_DIR to the"
            " folder it was started with"
        )
    return f"cannot be reached ({error.strerror or error}): set QMSUP_RUNTIME_DIR to a shorter path"


def _reason_there(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "cannot be found: there is no machine of this name"
    if isinstance(error, ConnectionRefusedError):
        return "is not running, or not on this port: `control.bind` in its configuration says which"
    if isinstance(error, TimeoutError):
        return "does not answer: is the machine on, and may this port be reached from here?"
    return f"cannot be reached ({error.strerror or error})"
