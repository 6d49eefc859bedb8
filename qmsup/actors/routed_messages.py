"""Requests of routes as workers tell of them, and what workers are told: the gateway's words for the fleet's."""

from dataclasses import dataclass

from qmsup.core.fleet.wishes import Goes, Stands, Wish
from qmsup.core.scheduling.events import RequestArrived
from qmsup.errors import Refusal
from qmsup.ids import Epoch, Incarnation, WorkerId
from qmsup.units import ms_from_seconds
from qmsup.wire import listening


@dataclass(frozen=True, slots=True)
class Routed:
    """A request of a route.

    Attributes:
        wish: for the fleet.
        arrived: for the ordinary line, should it be sent to this box; None = it is at its host already.
    """

    wish: Wish
    arrived: RequestArrived | None


def routed_of(arrived: RequestArrived, way: listening.Routed) -> Routed:
    """One that asks for a host."""
    wish = Wish(
        request=arrived.request,
        worker=arrived.listener,
        route=way.route,
        model=arrived.model,
        conversation=arrived.conversation,
        is_control=way.is_control,
        is_look=way.is_look,
        tokens=way.tokens,
        is_counted=way.is_counted,
        tried=way.tried,
        timeout=arrived.timeout,
    )
    return Routed(wish, arrived)


def routed_at_host(worker: WorkerId, holding: listening.Holding, way: listening.Routed) -> Routed:
    """One that a worker relays already."""
    wish = Wish(
        request=holding.request,
        worker=worker,
        route=way.route,
        model=holding.model,
        conversation=holding.conversation,
        is_control=way.is_control,
        tokens=way.tokens,
    )
    return Routed(wish, None)


def granted_to(goes: Goes, upstream: str, epoch: Epoch) -> listening.Granted:
    """The grant of a host, or peer. No child of ours is behind it."""
    return listening.Granted(
        request=goes.wish.request,
        epoch=epoch,
        model=goes.wish.model,
        incarnation=Incarnation(0),
        upstream=upstream,
        was_ready=True,
        waited_ms=ms_from_seconds(goes.waited),
        host=goes.host,
    )


def moved(stands: Stands) -> listening.Moved:
    """Its place in the line of its host."""
    return listening.Moved(places=((stands.wish.request, stands.place),))


def refused(wish: Wish, refusal: Refusal, host: str = "", upstream: str = "") -> listening.Refused:
    """It gets no host, unless it asks again with its tokens as this host has counted them."""
    return listening.Refused(
        request=wish.request,
        code=refusal.code,
        message=refusal.message,
        retry_after_s=refusal.retry_after,
        host=host,
        upstream=upstream,
    )
