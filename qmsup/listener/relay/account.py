"""What is told of a request once it is over: a line of the access log, and a row of the activity."""

import time

from qmsup.listener.relay.machine import Exchange
from qmsup.listener.relay.order import RelayOrder
from qmsup.log import Log
from qmsup.spec import LOCAL
from qmsup.units import Seconds
from qmsup.wire.listening import Finished

_LONGEST = 300
"""Bytes of a path: more of it tells nobody anything."""

_log = Log("relay")


class Account:
    """What of a request has to be known at its end, when its head and body are long gone.

    Attributes:
        host: where it was sent.
        waited_ms: from its arrival to its grant; None = it has none.
        first_at: when the first bytes of its answer came, by the loop's clock; 0 = not yet.
    """

    __slots__ = (
        "_fingerprint",
        "_key",
        "_line",
        "_method",
        "_model",
        "_request",
        "_route",
        "_since",
        "_streaming",
        "first_at",
        "host",
        "waited_ms",
    )

    def __init__(self, order: RelayOrder, now: float) -> None:
        self._request = order.request
        self._model = order.model
        self._method = order.method
        self._line = order.head.partition(b"\r\n")[0]
        self._key = order.key
        self._fingerprint = order.conversation or order.client
        self._streaming = order.streaming
        self._since = now
        self._route = "" if order.way is None else order.way.route
        self.host: str = LOCAL
        self.waited_ms: int | None = None
        self.first_at = 0.0

    def waited(self, now: float) -> Seconds:
        """Since it was asked for first."""
        return Seconds(now - self._since)

    def close(self, exchange: Exchange, sent: int, now: float) -> Finished:
        """What became of it.

        Args:
            exchange: over.
            sent: bytes that the client got.
            now: the loop's clock.
        """
        since, first = self._since, self.first_at
        tokens_in, tokens_out = exchange.tokens()
        return Finished(
            request=self._request,
            model=self._model,
            time=time.time() - (now - since),
            ms=round((now - since) * 1000),
            outcome=exchange.outcome,
            status=exchange.status,
            method=self._method,
            path=self._line.split(b" ", 2)[1].partition(b"?")[0][:_LONGEST].decode("latin-1"),
            key=self._key,
            fingerprint=self._fingerprint,
            streaming=self._streaming,
            wait_ms=self.waited_ms,
            ttft_ms=round((first - since) * 1000) if first else None,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            bytes=sent,
            route=self._route,
            host=self.host,
        )


def log(told: Finished) -> None:
    """Write the line of the access log."""
    _log.info(
        "request",
        method=told.method,
        path=told.path,
        model=told.model,
        status=told.status,
        outcome=told.outcome,
        bytes=told.bytes,
        ms=told.ms,
        wait_ms=told.wait_ms,
        request=told.request,
    )
