"""Ids of requests: `q-<random of this process>-<counter>`, unique over all workers and restarts."""

import itertools
import os
import secrets

from qmsup.ids import RequestId

_RANDOM_BYTES = 5
"""40 bits: two of a thousand workers meet once in two million restarts of them all."""


class _Source:
    __slots__ = ("_count", "_prefix")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._prefix = f"q-{secrets.token_hex(_RANDOM_BYTES)}-"
        self._count = itertools.count(1)

    def take(self) -> RequestId:
        # One step of a C iterator: no lock is needed between threads.
        return RequestId(f"{self._prefix}{next(self._count)}")


_source = _Source()
os.register_at_fork(after_in_child=_source.renew)


def new_request_id() -> RequestId:
    """An id nobody else gives out. Safe in threads and after a fork."""
    return _source.take()
