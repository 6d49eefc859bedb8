"""The scheduler process that comes after one that ended while it had a job.

It never hangs up on a job unless it ends: what it cannot do it answers. The request under whose grant the job was to be
begun lives on, since the worker tells of it in its greeting, so the next process can be given the job under it.
"""

from qmsup.listener.link import Link
from qmsup.listener.relay.order import RelayOrder, Remote
from qmsup.units import Seconds

LOOK_AGAIN = Seconds(0.1)


class Heir:
    """Of one request. It is looked for as long as the link waits for an absent scheduler."""

    __slots__ = ("_epoch", "_link", "_lost_at")

    def __init__(self, link: Link) -> None:
        """There is a scheduler."""
        self._link = link
        self._epoch = link.epoch
        self._lost_at = 0.0

    def is_awaited(self, now: float) -> bool:
        """Whether it makes sense to wait, now that the one that had the job has gone."""
        self._lost_at = self._lost_at or now
        return now - self._lost_at <= self._link.grace

    def has_come(self) -> bool:
        """Whether another one knows this worker, and what it holds; then that is the one to lose next."""
        if self._link.epoch == self._epoch:
            return False
        self._epoch = self._link.epoch
        self._lost_at = 0.0
        return True


def heir_of(order: RelayOrder | None, remote: Remote | None, link: Link) -> Heir | None:
    """Who may have to be waited for; None = nobody, since the request is for a server."""
    is_for_scheduler = order is not None and order.via and remote is None
    return Heir(link) if is_for_scheduler else None
