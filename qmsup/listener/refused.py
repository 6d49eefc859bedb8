"""What is told of a request for a model that is refused before anybody is asked for the model."""

import time

from qmsup.errors import Refusal, status_of
from qmsup.ids import ModelId, RequestId
from qmsup.listener.body import Environ
from qmsup.listener.outcome import Outcome
from qmsup.listener.passthrough import PREFIX
from qmsup.listener.routed import PREFIX as ROUTE_PREFIX
from qmsup.listener.routes import RELAYED, looked_at
from qmsup.wire.listening import Finished

TRIAL = "qmsup.is_trial"
"""In the environ of a request whose refusal is not used: it is judged a second time, and then answered."""

_LONGEST = 300
_LOOKING = frozenset({"GET", "HEAD"})


def concerns_a_model(environ: Environ) -> bool:
    """Whether the request would have been relayed."""
    if TRIAL in environ:
        return False
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    if path.startswith((PREFIX, ROUTE_PREFIX)):
        return True
    if method == "POST":
        return path in RELAYED
    return method in _LOOKING and looked_at(path, environ.get("QUERY_STRING", "")) is not None


def told_of(environ: Environ, refusal: Refusal, request: RequestId) -> Finished:
    """The refusal as activity. Which model was meant is not told: it may be any text."""
    return Finished(
        request=request,
        model=ModelId(""),
        time=time.time(),
        ms=0,
        outcome=Outcome.FAILED,
        status=status_of(refusal.code),
        method=environ["REQUEST_METHOD"][:_LONGEST],
        path=environ["PATH_INFO"][:_LONGEST],
    )
