"""Who may ask: the listener's API keys."""

import hashlib
import hmac
import ipaddress

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Environ


class Keys:
    """The keys of one listener; none = open to everybody."""

    __slots__ = ("_digests",)

    def __init__(self, keys: tuple[str, ...]) -> None:
        # Digests are of one length, so a comparison tells nothing about a key's.
        self._digests = tuple(_digest(key.encode()) for key in keys)

    def check(self, environ: Environ) -> str:
        """Let the request pass, or not.

        The key is looked for in `Authorization: Bearer …`, bare `Authorization` and `X-Api-Key`.

        Returns:
            Which key it came with, by its place in the configuration, from 1; "" = none is needed.

        Raises:
            RequestError: None of the keys came with it.
        """
        if not self._digests:
            return ""
        offered = [_digest(key.encode("latin-1", "replace")) for key in _offered(environ)]
        # Every pair is compared, always: how long it takes says nothing about which was close.
        matches = [
            hmac.compare_digest(ours, theirs) for theirs in offered for ours in self._digests
        ]
        if not any(matches):
            problem = "is not one of this port's" if offered else "is missing"
            raise RequestError(
                Refusal(
                    code=Code.INVALID_API_KEY,
                    message=f"the API key {problem}: send it as `Authorization: Bearer KEY`",
                )
            )
        return str(matches.index(True) % len(self._digests) + 1)

    def check_operator(self, environ: Environ) -> None:
        """Let what is the operator's business pass: who has a key, or where there is none, a program of this machine.

        `check` comes first. A request that a proxy passes on, or that a page of another site makes a browser send,
        comes from this machine without being of it.

        Raises:
            RequestError: It came from elsewhere, and this port has no keys.
        """
        if self._digests or (_is_local(environ) and not _is_foreign_page(environ)):
            return
        raise RequestError(
            Refusal(
                code=Code.INVALID_API_KEY,
                message="only programs on this machine may ask for that, as long as this port has no apiKeys",
            )
        )


def _is_local(environ: Environ) -> bool:
    if "HTTP_X_FORWARDED_FOR" in environ or "HTTP_FORWARDED" in environ:
        return False
    try:
        return ipaddress.ip_address(environ.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _is_foreign_page(environ: Environ) -> bool:
    origin = environ.get("HTTP_ORIGIN")
    return origin is not None and origin.partition("://")[2] != environ.get("HTTP_HOST")


def _offered(environ: Environ) -> list[str]:
    offered = []
    if authorization := environ.get("HTTP_AUTHORIZATION", "").strip():
        scheme, _, key = authorization.partition(" ")
        offered.append(key.strip() if scheme.lower() == "bearer" else authorization)
    if key := environ.get("HTTP_X_API_KEY", "").strip():
        offered.append(key)
    return offered


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
