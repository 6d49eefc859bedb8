"""What of gunicorn's insides the worker leans on."""

from gunicorn.http import Request
from gunicorn.workers import gthread


def gunicorn_moved() -> list[str]:
    """The internals of gunicorn that this worker leans on and that are not where they were."""
    worker = [
        "_cap_keepalive",
        "_keepalive_after",
        "accept",
        "enqueue_req",
        "finish_request",
        "handle",
        "handle_error",
        "handle_request",
        "init_process",
        "is_parent_alive",
        "load_wsgi",
        "murder_keepalived",
        "run",
        "wait_for_and_dispatch_events",
    ]
    conn = ["close", "init"]
    request = ["_expected_100_continue", "force_close"]
    missing = [f"ThreadWorker.{name}" for name in worker if not hasattr(gthread.ThreadWorker, name)]
    missing += [f"Request.{name}" for name in request if not hasattr(Request, name)]
    return missing + [f"TConn.{name}" for name in conn if not hasattr(gthread.TConn, name)]
