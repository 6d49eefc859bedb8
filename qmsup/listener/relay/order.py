"""What the WSGI app hands to the relay engine: the upstream request, and what to ask the scheduler for it."""

from dataclasses import dataclass
from typing import BinaryIO

from qmsup.ids import ModelId, RequestId
from qmsup.listener.outcome import Dialect
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrder:
    """Returned by the app in place of a response body. The worker takes the connection over from there.

    Attributes:
        head: the upstream request's line and header lines, each ended by CRLF, without `Host` and without the
            closing blank line: both are added when the grant names the upstream. Has `Connection: close`.
        body: what follows the head, or an open file (at its start) that holds it when it is large.
        streaming: the client asked for an event stream, so a placeholder may be sent while it waits.
        method: the client's; a HEAD has an answer without a body.
        dialect: how its answer tells of tool calls.
        hold, patience, timeout: what the client's headers said; None = nothing.
        client: who asks, where nothing is known of the conversation.
        key: which of the listener's keys it came with, by its place; "" = none is needed.
        via: a Unix socket that it goes to once granted; "" = to the upstream that the grant names.
    """

    request: RequestId
    model: ModelId
    method: str
    head: bytes
    body: bytes | BinaryIO
    streaming: bool = False
    dialect: Dialect = Dialect.NONE
    hold: Seconds | None = None
    patience: Seconds | None = None
    timeout: Seconds | None = None
    conversation: str = ""
    client: str = ""
    key: str = ""
    via: str = ""
    origin: str | None = None
    """The client's `Origin`, for CORS headers on answers the engine writes itself."""
