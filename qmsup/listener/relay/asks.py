"""What the scheduler is asked for a request, and what stands for its grant where it is not asked."""

from qmsup.ids import Epoch, HostName, Incarnation
from qmsup.listener.relay.order import RelayOrder, Remote
from qmsup.spec import LOCAL
from qmsup.units import Seconds, ms_from_seconds
from qmsup.wire.listening import Ask, Granted, Routed

_NO_TIME = Seconds(0.0)


def ask_of(
    order: RelayOrder,
    tried: tuple[HostName, ...] = (),
    *,
    counted: int | None = None,
    waited: Seconds = _NO_TIME,
) -> Ask:
    """The question for a request.

    Args:
        order: what the app decided.
        tried: hosts of its route that gave no byte of an answer.
        counted: the tokens of its prompt as a host has counted them; None = they are estimated.
        waited: so far, for a grant.
    """
    way = order.way
    return Ask(
        request=order.request,
        model=order.model,
        streaming=order.streaming,
        hold_ms=_ms(order.hold),
        patience_ms=_ms(order.patience),
        timeout_ms=_ms(order.timeout),
        conversation=order.conversation,
        client=order.client,
        routed=None
        if way is None
        else Routed(
            route=way.route,
            is_control=way.is_control,
            tokens=way.tokens if counted is None else counted,
            tried=tried,
            is_look=way.is_look,
            is_counted=counted is not None,
        ),
        waited_ms=ms_from_seconds(waited),
    )


def granted_to(peer: Remote, order: RelayOrder) -> Granted:
    """A peer's requests go to it at once: nothing of ours is in use for them."""
    return Granted(
        request=order.request,
        epoch=Epoch(0),
        model=order.model,
        incarnation=Incarnation(0),
        upstream=peer.upstream,
        was_ready=True,
        waited_ms=0,
        host=peer.name,
    )


def remote_of(order: RelayOrder, host: str) -> Remote | None:
    """How a granted host is spoken to; None = as a child of ours."""
    if host == LOCAL:
        return None
    if order.peer is not None:
        return order.peer
    return None if order.way is None else order.way.remotes.get(HostName(host))


def _ms(seconds: Seconds | None) -> int | None:
    return None if seconds is None else ms_from_seconds(seconds)
