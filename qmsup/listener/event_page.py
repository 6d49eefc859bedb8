"""`GET /api/events`: how things stand, for a client that goes on to hear what happens."""

from collections.abc import Callable, Iterator

from qmsup import places
from qmsup.child_logs import last_lines_if_any
from qmsup.listener import event_stream
from qmsup.listener.body import Environ
from qmsup.listener.catalog import Catalog
from qmsup.listener.event_stream import Models, Told
from qmsup.listener.relay.watch import Watch
from qmsup.listener.request_ids import new_request_id

PATH = "/api/events"
_LINES = 50
"""Of each model's log."""
_REQUESTS = 100


def watch(environ: Environ, catalog: Catalog, ask: Callable[[str], object]) -> Watch:
    """Make a client's order.

    Args:
        environ: Its request.
        catalog: What it may hear of.
        ask: Asks the scheduler a verb, for the answer's body.

    Raises:
        RequestError: The scheduler does not answer.
    """
    models = {model.id: model for model in catalog.models}
    rows = _dicts(ask("ps"), "models")
    states = {str(row.get("name")): str(row.get("state")) for row in rows}
    counts = {str(row.get("name")): n for row in rows if isinstance(n := row.get("inflight"), int)}
    requests = _dicts(ask("activity"), "activity")[-_REQUESTS:]
    so_far = (
        *_logs(models),
        event_stream.model_status(models, states),
        event_stream.requests_over(models, requests),
        event_stream.in_flight(models, counts),
    )
    return Watch(
        request=new_request_id(),
        models=models,
        so_far=b"".join(so_far),
        origin=environ.get("HTTP_ORIGIN"),
    )


def _logs(models: Models) -> Iterator[bytes]:
    for model in models:
        if lines := last_lines_if_any(places.log_file(model), _LINES):
            yield event_stream.models_wrote(model, lines)


def _dicts(answer: object, name: str) -> list[Told]:
    entries = answer.get(name) if isinstance(answer, dict) else None
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
