"""Whose the sockets in the runtime folder are."""

import pykka

from qmsup import places
from qmsup.actors.feed import FeedActor
from qmsup.actors.job_watcher import JobWatcher
from qmsup.actors.names import NameAgain
from qmsup.actors.scheduler import SchedulerActor

_OWNERS = (SchedulerActor, FeedActor, JobWatcher)


def are_named() -> bool:
    """Whether each has its name in the folder."""
    sockets = (places.scheduler_socket(), places.feed_socket(), places.jobs_socket())
    return all(socket.exists() for socket in sockets)


def name_again() -> None:
    """Have each that has none be given its name again."""
    for owner in _OWNERS:
        pykka.ActorRegistry.broadcast(NameAgain(), owner)
