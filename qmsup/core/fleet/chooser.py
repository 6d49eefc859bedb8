"""Which host a new conversation goes to: the freest of those that have the model, else of those that could load it."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from qmsup.errors import Code, Refusal
from qmsup.ids import HostName, ModelId


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """What is known of a host, with one model in mind.

    Attributes:
        is_healthy: it answered its health check lately.
        is_draining: it takes nothing new.
        is_loaded: the model is resident there. An unreadable answer counts as no.
        can_serve: the configuration lists the model for this host.
        free: slots over all models of the host, as the limiter counts them.
        queued: requests that wait for this model there.
        weight: how much a free slot of this host is worth against another's.
        context: tokens that one slot of the model holds there; None = not known.
    """

    is_healthy: bool
    is_draining: bool = False
    is_loaded: bool = False
    can_serve: bool = False
    free: int = 0
    queued: int = 0
    weight: float = 1.0
    context: int | None = None

    @property
    def is_eligible(self) -> bool:
        """Whether anything may be sent there."""
        return self.is_healthy and not self.is_draining

    @property
    def has_model(self) -> bool:
        """Whether the model is there, or could be loaded."""
        return self.is_loaded or self.can_serve


Info = Callable[[HostName], HostView | None]
"""What is known of a host; None = nothing (it is not, or no longer, one of ours)."""


def best(candidates: Sequence[HostName], info: Info) -> HostName | None:
    """The host to send a new conversation to.

    A host with the model resident beats every other, however free: a load costs more than a wait. Among equals the
    highest `free * weight` wins, then the shorter line, then the order of the list. A host without a free slot is
    still chosen when nothing is better; the request waits there.

    Args:
        candidates: the route's hosts, in the order of the configuration.
        info: asked once for each.

    Returns:
        None when nothing is eligible; `no_host` says why.
    """
    views = {
        host: view for host in candidates if (view := info(host)) is not None and view.is_eligible
    }
    loaded = [host for host, view in views.items() if view.is_loaded]
    able = [host for host, view in views.items() if view.can_serve]

    def worth(host: HostName) -> tuple[float, int]:
        view = views[host]
        return view.free * view.weight, -view.queued

    # max() keeps the earliest of equals, which is the order of the list.
    return max(loaded or able, key=worth, default=None)


def no_host(
    model: ModelId, candidates: Sequence[HostName], info: Info, *, tried: Container[HostName] = ()
) -> Refusal:
    """What a client is told when `best` found nothing: each host, and what is wrong with it.

    Args:
        model: asked for.
        candidates: the hosts, in the order of the route.
        info: what is known of each.
        tried: those that had the request already.
    """
    reasons = [
        f"{host} {'gave no answer' if host in tried else _fault(info(host))}" for host in candidates
    ]
    told = ", ".join(reasons) or "the route has no hosts"
    return Refusal(code=Code.NO_HOST, message=f"no host can serve {model}: {told}")


def _fault(view: HostView | None) -> str:
    if view is None:
        return "is not known"
    if not view.is_healthy:
        return "is not healthy"
    if view.is_draining:
        return "is draining"
    return "does not have the model"
