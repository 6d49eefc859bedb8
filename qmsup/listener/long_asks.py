"""Questions whose answer takes as long as a model's load, say: who waits for one has a thread of the worker.

So there is a bound on them: however many programs have models loaded, the catalogue, `/health` and requests that a
thread reads are answered meanwhile.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from qmsup.errors import Code, Refusal, RequestError
from qmsup.units import Seconds

MOST = 16
"""Of one worker, which has 32 threads; up to 8 more are log streams'."""
_RETRY = Seconds(10.0)

_free = threading.BoundedSemaphore(MOST)


@contextmanager
def place() -> Iterator[None]:
    """One of the places, for as long as it is waited.

    Raises:
        RequestError: all are taken.
    """
    if not _free.acquire(blocking=False):
        message = (
            f"{MOST} requests wait at this worker already for a load, an unload, a lease, a reload"
            " or the end of a job: try again later"
        )
        raise RequestError(Refusal(code=Code.QUEUE_FULL, message=message, retry_after=_RETRY))
    try:
        yield
    finally:
        _free.release()
