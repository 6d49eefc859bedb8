"""CURVE: who may control the scheduler over TCP. Key files as ZeroMQ's own tools make them, readable by their owner."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator

from qmsup.errors import ConfigError
from qmsup.log import Log
from qmsup.transport import context

_OWN = ".key_secret"
_PUBLIC = ".key"
_DOMAIN = "control"
_NAME = re.compile(r"[\w.-]+")
_NO_KEY = (OSError, ValueError, LookupError)
"""What reading a file raises that is no key."""
_log = Log("control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """A pair."""

    public: bytes
    secret: bytes


def make_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a pair of keys, never in the place of another.

    Args:
        folder: made if need be, closed to others.
        name: of both files, without their endings.

    Returns:
        The file of the public key, and that of the secret one.

    Raises:
        ConfigError: there is one already, the name is none, or nothing can be written there.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError((f"{name!r} is no name for a key: use letters, digits, . _ and -",))
    public, secret = folder / f"{name}{_PUBLIC}", folder / f"{name}{_OWN}"
    if public.exists() or secret.exists():
        raise ConfigError(
            (f"{folder} has a key {name!r} already: remove it first, or choose another name",)
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        zmq.auth.create_certificates(folder, name)
        secret.chmod(0o600)
    except OSError as error:
        raise ConfigError(
            (f"cannot write keys into {folder}: {error.strerror or error}",)
        ) from error
    return public, secret


def allow(public: Path, clients: Path) -> Path:
    """Put a public key where the scheduler looks for those of its clients.

    Raises:
        ConfigError: it cannot be written there.
    """
    try:
        clients.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(shutil.copy(public, clients / public.name))
    except OSError as error:
        raise ConfigError((f"cannot write into {clients}: {error.strerror or error}",)) from error


def read_keys(path: Path) -> Keys:
    """The pair in a file of a secret key.

    Raises:
        ConfigError: it cannot be read, or holds no secret key.
    """
    try:
        public, secret = zmq.auth.load_certificate(path)
    except _NO_KEY as error:
        hint = "make keys with `qmsup keys`"
        raise ConfigError((f"cannot read the key file {path} ({error}): {hint}",)) from error
    if secret is None:
        raise ConfigError((f"{path} holds a public key only: name the file that ends in _secret",))
    return Keys(public=public, secret=secret)


def read_public(path: Path) -> bytes:
    """The public key in a file, of either kind.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        public, _ = zmq.auth.load_certificate(path)
    except _NO_KEY as error:
        raise ConfigError((f"cannot read the key file {path} ({error})",)) from error
    return public


class _Known:
    """The keys in a folder, as ZeroMQ's authenticator asks for them."""

    def __init__(self, clients: Path) -> None:
        self._clients = clients
        self._keys: set[bytes] = set()
        self._seen = self._look()
        self._read()

    def callback(self, _domain: str, key: bytes) -> bool:
        """Whether a client with this key, in ZeroMQ's letters, comes in."""
        if (seen := self._look()) != self._seen:  # a key was put there or taken away
            self._seen = seen
            self._read()
        return key in self._keys

    def _read(self) -> None:
        self._keys = set()
        for path in sorted(self._clients.glob(f"*{_PUBLIC}")):
            try:
                self._keys.add(read_public(path))
            except ConfigError as error:
                _log.warning("control.key_unreadable", file=str(path), because=str(error))

    def _look(self) -> tuple[tuple[str, int, int], ...]:
        """What lies there, as far as it can be told without reading. A folder that is gone has no keys."""
        try:
            return tuple(sorted(_stamp(entry) for entry in os.scandir(self._clients)))
        except OSError:
            return ()


def _stamp(entry: os.DirEntry[str]) -> tuple[str, int, int]:
    found = entry.stat(follow_symlinks=False)
    return entry.name, found.st_mtime_ns, found.st_ino


@contextmanager
def admitting(clients: Path) -> Iterator[str]:
    """While this lasts, sockets of the domain that it gives admit the keys in this folder, and no other.

    Args:
        clients: files of public keys. What is put there counts for the next connection, what is taken away no more;
            connections that there are stay. One that cannot be read admits nobody, and keeps nobody out.
    """
    known = _Known(clients)
    gate = ThreadAuthenticator(context.current())
    gate.start()
    try:
        gate.configure_curve_callback(domain=_DOMAIN, credentials_provider=known)
        yield _DOMAIN
    finally:
        with contextlib.suppress(zmq.ZMQError):  # the context is ending
            gate.stop()


def allow_ipv6(socket: zmq.Socket[bytes], endpoint: str) -> None:
    """Have a socket take an IPv6 address, where it is one. ZeroMQ takes none unless told."""
    if "[" in endpoint:
        socket.ipv6 = True


def serve_with(socket: zmq.Socket[bytes], keys: Keys, domain: str) -> None:
    """Have a socket admit those alone that the domain's keys are known of. Before it is bound."""
    socket.curve_server = True
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret
    socket.zap_domain = domain.encode()


def connect_with(socket: zmq.Socket[bytes], keys: Keys, server: bytes) -> None:
    """Have a socket show its own key, and trust this server alone. Before it is connected."""
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret
    socket.curve_serverkey = server
