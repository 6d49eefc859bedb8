"""`requests` for servers over TLS whose certificates count as the configuration says, and no other way."""

import ssl
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from typing_extensions import override

from qmsup.upstream.trust import distrust

# It was the operator's choice, and `qmsup check` remarked on it: nobody needs to read it each second.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


class Trusting(HTTPAdapter):
    """For `https://`, in place of the one that a session has. Its session's `verify` counts for nothing."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Use just this one; see `qmsup.upstream.trust`."""
        self._context = context
        super().__init__()

    @override
    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, *_of_no_use: Any, **_neither: Any
    ) -> tuple[Any, Any]:
        """The pool's key; of what counts for TLS, the context is all."""
        place, _ = super().build_connection_pool_key_attributes(request, verify=False)
        return place, {"ssl_context": self._context}

    @override
    def cert_verify(self, *_of_no_use: Any, **_neither: Any) -> None:
        """Nothing: the context knows."""


def cause_of(error: BaseException) -> str:
    """Why TLS failed, out of the exceptions that libraries wrapped it in."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return distrust(seen)
        inner = [a for a in (*seen.args, getattr(seen, "reason", None)) if isinstance(a, Exception)]
        seen = inner[0] if inner else seen.__cause__ or seen.__context__
    return "TLS failed"
