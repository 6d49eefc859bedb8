"""What the WSGI app hands to the relay engine: the upstream request, and what to ask the scheduler for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from qmsup.ids import HostName, ModelId, RequestId, RouteName
from qmsup.listener.outcome import Dialect
from qmsup.listener.relay.secured import Tls
from qmsup.units import Seconds

_ENCODINGS = re.compile(rb"(?<=\n)Accept-Encoding:[^\n]*\n")
"""The line of a head, as it is written here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A server on another machine, as requests are sent to it.

    Attributes:
        name: in the configuration.
        upstream: `host:port`.
        path: goes before the path of each request.
        lines: header lines of our own, each ended by CRLF: our key for it.
        tls: None = it is spoken to in plain HTTP.
        connect_within: a connection to it takes no longer.
        answer_within: nor the first byte of an answer to a whole request; 0 = it may.
    """

    name: HostName
    upstream: str
    path: bytes = b""
    lines: bytes = field(default=b"", repr=False)
    tls: Tls | None = None
    connect_within: Seconds = Seconds(10.0)
    answer_within: Seconds = Seconds(0.0)

    def addressed(self, head: bytes) -> bytes:
        """The head of a request as this server is to get it."""
        if self.path:
            method, _, rest = head.partition(b" ")
            head = b"%b %b%b" % (method, self.path, rest)
        return head + self.lines

    @property
    def host(self) -> str:
        """What its `Host` says: the port is left out where it is the usual one, which some servers insist on."""
        return self.upstream.removesuffix(":80" if self.tls is None else ":443")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wayfaring:
    """What a request of a route carries beside what every request does.

    Attributes:
        route: the name that the client used.
        remotes: how each host, and each peer, of the route is spoken to; this box is not among them.
        is_control: it looks at a server or steers it, and takes no slot there.
        is_look: it looks, and nothing more: this box loads no model for it.
        tokens: about how many its prompt has.
    """

    route: RouteName
    remotes: Mapping[HostName, Remote]
    is_control: bool = False
    is_look: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrder:
    """Returned by the app in place of a response body. The worker takes the connection over from there.

    Attributes:
        head: the upstream request's line and header lines, each ended by CRLF, without `Host` and without the
            closing blank line: both are added when the grant names the upstream. Has `Connection: close`.
        body: what follows the head, or an open file (at its start) that holds it when it is large.
        streaming: the client asked for an event stream, so a placeholder may be sent while it waits.
        quiet: its client is not told how it waits, whatever the configuration says of others.
        method: the client's; a HEAD has an answer without a body.
        dialect: how its answer tells of tool calls.
        hold, patience, timeout: what the client's headers said; None = nothing.
        client: who asks, where nothing is known of the conversation.
        key: which of the listener's keys it came with, by its place; "" = none is needed.
        upgrades: it asks for a tunnel (a websocket); the answer may be an ordinary one all the same.
        via: a Unix socket that it goes to once granted; "" = to the upstream that the grant names.
        peer: it goes there at once, and the scheduler is not asked; None = to a child, or a host of the route.
        way: of a request on a route; None = it is on none.
    """

    request: RequestId
    model: ModelId
    method: str
    head: bytes
    body: bytes | BinaryIO
    streaming: bool = False
    quiet: bool = False
    dialect: Dialect = Dialect.NONE
    hold: Seconds | None = None
    patience: Seconds | None = None
    timeout: Seconds | None = None
    conversation: str = ""
    client: str = ""
    key: str = ""
    upgrades: bool = False
    via: str = ""
    peer: Remote | None = None
    way: Wayfaring | None = None
    origin: str | None = None
    """The client's `Origin`, for CORS headers on answers the engine writes itself."""


def whole_head(
    order: RelayOrder, remote: Remote | None, upstream: str, *, is_plain: bool = False
) -> bytes:
    """The head of a request, with `Host` and the blank line that ends it.

    Args:
        order: what the app decided.
        remote: where it goes, if to another machine.
        upstream: `host:port` of a child, else.
        is_plain: its answer must not be compressed, whatever the client understands.
    """
    head = _ENCODINGS.sub(b"", order.head) if is_plain else order.head
    if remote is None:
        return b"%bHost: %b\r\n\r\n" % (head, upstream.encode())
    return b"%bHost: %b\r\n\r\n" % (remote.addressed(head), remote.host.encode())
