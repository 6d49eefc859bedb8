"""What `serve` inherits from parts of it that died: the ends of their children, and models that nobody stopped.

Where it is PID 1, or nobody else reaps, those would stay as zombies. So it takes them over in any case.
"""

import ctypes
import os
from collections.abc import Container

from qmsup.daemon.lock import LockedError, see_that_nobody_holds
from qmsup.log import Log
from qmsup.processes.leftovers import stop_leftovers
from qmsup.units import Seconds

_PR_SET_CHILD_SUBREAPER = 36

_log = Log("serve")
_libc = ctypes.CDLL(None, use_errno=True)


def take_over_orphans() -> None:
    """Be the parent of whatever a descendant leaves behind; `reap` is to be called then."""
    if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        _log.warning("serve.no_subreaper", because=os.strerror(ctypes.get_errno()))


def reap(own: Container[int | None]) -> None:
    """Collect the ends of those that were taken over.

    Args:
        own: pids of children that somebody waits for; they are left to him.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return  # it is collected soon, and then we are called again
        os.waitpid(ended.si_pid, os.WNOHANG)


def stop_models(grace: Seconds) -> None:
    """End the models that a scheduler left running as it could not end in order. Waits; none = at once.

    Args:
        grace: between TERM and KILL.
    """
    try:
        see_that_nobody_holds()
    except LockedError:
        return  # they are another scheduler's
    stopped = stop_leftovers(grace=grace).stopped
    if stopped:
        because = "the scheduler could not: it died or hung while it was to end"
        models = ", ".join(record.model for record in stopped)
        _log.warning("serve.stopped_models", models=models, because=because)
