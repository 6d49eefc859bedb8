"""What is asked of the fleet for a request of a route, and what it says."""

from dataclasses import dataclass

from qmsup.errors import Refusal
from qmsup.ids import HostName, ModelId, RequestId, RouteName, WorkerId
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A request wants a host.

    Attributes:
        worker: who relays it.
        route: the name that the client used; a template may serve it.
        model: as hosts call it.
        conversation: the affinity key, "" when there is none.
        is_control: it takes no slot, and goes where its conversation is.
        is_look: it only reads, and loads nothing on this box.
        tokens: about how many its prompt has.
        is_counted: they were counted by a host.
        tried: hosts that gave no byte of an answer to it.
        timeout: so long may it wait; None or 0 = for ever.
    """

    request: RequestId
    worker: WorkerId
    route: RouteName
    model: ModelId
    conversation: str = ""
    is_control: bool = False
    is_look: bool = False
    tokens: int = 0
    is_counted: bool = False
    tried: tuple[HostName, ...] = ()
    timeout: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goes:
    """It may go to this host, or peer, now. To this box it goes through the ordinary line.

    Attributes:
        waited: for a slot.
    """

    wish: Wish
    host: HostName
    waited: Seconds = Seconds(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """It waits for a slot of its host; 1 = next."""

    wish: Wish
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """It gets no host; nothing is kept of it.

    Attributes:
        count_at: a host that can count its prompt, which was only estimated to be too long; then it may ask again.
    """

    wish: Wish
    refusal: Refusal
    count_at: HostName | None = None


Said = Goes | Stands | Fails
