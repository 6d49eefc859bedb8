"""What a worker may speak of: its own requests. Anybody who can open the socket can say the id of another's."""

from collections.abc import Callable

from qmsup.core.scheduling.events import (
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    RequestAbandoned,
    RequestArrived,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.state import State
from qmsup.ids import LeaseId, RequestId, WorkerId
from qmsup.log import Log

_log = Log("workers")


def is_its_own(
    worker: WorkerId,
    said: Event,
    state: State,
    on_a_route: Callable[[RequestId], WorkerId | None],
) -> bool:
    """Whether what a worker says is about a request of its own, or one that nobody knows; the log names what is not.

    A job's lease is no request: control clients renew and release it, and no worker does.

    Args:
        worker: who says it.
        said: what became of a request; other events are anybody's.
        state: of the ordinary line.
        on_a_route: tells whose a request of a route is; None = it is on none.
    """
    match said:
        case LeaseReleased(lease=lease_id):
            pass
        case (
            GrantAccepted(request=request)
            | GrantDeclined(request=request)
            | RequestAbandoned(request=request)
            | UseLasted(request=request)
        ):
            lease_id = LeaseId(request)
        case _:
            return True
    owner: WorkerId | None = worker
    if (lease := state.leases.get(lease_id) or state.lapsed.get(lease_id)) is not None:
        owner = lease.listener
    elif (waiter := state.waiters.get(RequestId(lease_id))) is not None:
        owner = waiter.origin.listener if isinstance(waiter.origin, RequestArrived) else None
    elif (on_route := on_a_route(RequestId(lease_id))) is not None:
        owner = on_route
    if owner == worker:
        return True
    _log.warning_of_a_peer(
        "worker.not_its_own",
        worker=worker,
        said=type(said).__name__,
        request=lease_id,
        owner=owner or "a job",
    )
    return False
