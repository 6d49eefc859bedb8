"""What the app hands over when a client wants to look on, and what it may hand over at all."""

from dataclasses import dataclass

from qmsup.ids import RequestId
from qmsup.listener.event_stream import Models
from qmsup.listener.relay.order import RelayOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A client that is to hear what happens, until it leaves.

    Attributes:
        models: what it may hear of.
        so_far: events that tell how things stand.
        origin: the client's `Origin`.
    """

    request: RequestId
    models: Models
    so_far: bytes
    origin: str | None = None


Order = RelayOrder | Watch
"""The worker takes the connection over from the app."""
