"""Who may ask, and for what: the listener's API keys."""

import base64
import binascii
import hashlib
import hmac
import ipaddress
from dataclasses import dataclass

from qmsup.errors import Code, Refusal, RequestError
from qmsup.ids import ModelId
from qmsup.listener.body import Environ
from qmsup.spec import KeySpec

_DIGEST = "sha256:"
_OF_PROXIES = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")
"""With one of them, the address is a proxy's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a request may.

    Attributes:
        key: which key it came with: its name, or its place in the configuration, from 1; "" = none is needed.
        models: those it may ask for; None = all of the port's.
        admin: what is the operator's business is its, too.
    """

    key: str = ""
    models: frozenset[ModelId] | None = None
    admin: bool = False


_ANYBODY = Access()


class Keys:
    """The keys of one listener; none = open to everybody."""

    __slots__ = ("_digests", "_doors")

    def __init__(self, keys: tuple[KeySpec, ...]) -> None:
        # Digests are of one length, so a comparison tells nothing about a key's.
        self._digests = tuple(_digest_of(key.key) for key in keys)
        self._doors = tuple(
            Access(key=key.name or str(place), models=key.models, admin=key.admin)
            for place, key in enumerate(keys, 1)
        )

    @property
    def are_there(self) -> bool:
        """Whether a request needs one."""
        return bool(self._digests)

    def check(self, environ: Environ) -> Access:
        """Let the request pass, or not.

        The key is looked for in `Authorization` (`Bearer …`, bare, or the password of `Basic …`) and `X-Api-Key`.

        Raises:
            RequestError: None of the keys came with it.
        """
        if not self._digests:
            return _ANYBODY
        offered = [_digest(key.encode("latin-1", "replace")) for key in _offered(environ)]
        # Every pair is compared, always: how long it takes says nothing about which was close.
        matches = [
            hmac.compare_digest(ours, theirs) for theirs in offered for ours in self._digests
        ]
        if not any(matches):
            problem = "is not one of this port's" if offered else "is missing"
            raise _refused(f"the API key {problem}: send it as `Authorization: Bearer KEY`")
        return self._doors[matches.index(True) % len(self._digests)]

    def check_operator(self, environ: Environ) -> Access:
        """Let what is the operator's business pass: who has such a key, or where there is none, a program of this box.

        A request that a proxy passes on, or that a page of another site makes a browser send, comes from this machine
        without being of it.

        Raises:
            RequestError: It has no key of the operator's, or came from elsewhere and this port has no keys.
        """
        access = self.check(environ)
        if self._digests:
            if not access.admin:
                raise _refused("this API key is not for that: it takes one with `admin: true`")
        elif not is_of_this_machine(environ):
            raise _refused(
                "only programs on this machine may ask for that, as long as this port has no apiKeys"
            )
        return access


def is_of_this_machine(environ: Environ) -> bool:
    """Whether a program of this machine asks for itself, as far as a request can tell."""
    return _is_local(environ) and not _is_foreign_page(environ)


def _refused(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.INVALID_API_KEY, message=message))


def _is_local(environ: Environ) -> bool:
    if any(header in environ for header in _OF_PROXIES):
        return False
    try:
        return ipaddress.ip_address(environ.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _is_foreign_page(environ: Environ) -> bool:
    origin = environ.get("HTTP_ORIGIN")
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if origin is None and site is None:
        return False  # no browser
    host = environ.get("HTTP_HOST", "")
    if site not in (None, "none", "same-origin") or not _names_this_machine(host):
        return True
    return origin is not None and origin.partition("://")[2] != host


def _names_this_machine(host: str) -> bool:
    """A name of anybody's may be made to mean this machine; an address or `localhost` may not."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _offered(environ: Environ) -> list[str]:
    offered = []
    if authorization := environ.get("HTTP_AUTHORIZATION", "").strip():
        scheme, _, key = authorization.partition(" ")
        match scheme.lower():
            case "bearer":
                offered.append(key.strip())
            case "basic":
                offered.append(_password(key.strip()))
            case _:
                offered.append(authorization)
    if key := environ.get("HTTP_X_API_KEY", "").strip():
        offered.append(key)
    return offered


def _password(credentials: str) -> str:
    """What stands behind the colon; bytes pose as Latin-1, as they do in all of an environ."""
    try:
        said = base64.b64decode(credentials.encode("latin-1", "replace"), validate=True)
    except binascii.Error:
        return ""
    return said.partition(b":")[2].decode("latin-1")


def _digest_of(key: str) -> bytes:
    if key.startswith(_DIGEST):
        return bytes.fromhex(key.removeprefix(_DIGEST))
    return _digest(key.encode())


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
