"""What `qmsup hosts` shows: each host, how it was seen last, and what it has of each of its models."""

from collections.abc import Iterable

from qmsup.core.fleet.dispatcher import Dispatcher
from qmsup.ids import ModelId
from qmsup.spec import LOCAL, Spec
from qmsup.units import Seconds


def shown(
    spec: Spec, dispatcher: Dispatcher, now: Seconds, loaded: Iterable[ModelId]
) -> list[dict[str, object]]:
    """A row for each host of the configuration, in its order, and one for this box if routes may choose it.

    Args:
        spec: the configuration in force.
        dispatcher: knows the hosts.
        now: the monotonic clock.
        loaded: the models that are ready on this box.
    """
    rows = [_row(spec, dispatcher, host, now) for host in spec.hosts]
    if LOCAL in dispatcher.draining or any(LOCAL in route.hosts for route in spec.routes.values()):
        rows.append(_this_box(dispatcher, loaded))
    return rows


def _this_box(dispatcher: Dispatcher, loaded: Iterable[ModelId]) -> dict[str, object]:
    """Its models, slots and lines are what `ps` and `queue` tell."""
    return {
        "name": LOCAL,
        "url": "",
        "kind": "this box",
        "healthy": True,
        "because": "",
        "draining": LOCAL in dispatcher.draining,
        "weight": 1.0,
        "loaded": sorted(loaded),
        "slots": None,
        "busy": None,
        "conversations": sum(kept == LOCAL for kept in dispatcher.leases.hosts().values()),
        "models": [],
    }


def _row(spec: Spec, dispatcher: Dispatcher, name: str, now: Seconds) -> dict[str, object]:
    host = next(h for h in spec.hosts.values() if h.name == name)
    limiter, sight = dispatcher.limiter, dispatcher.sights.get(host.name)
    held = [kept for kept in dispatcher.leases.hosts().values() if kept == host.name]
    return {
        "name": host.name,
        "url": f"{'http' if host.trust is None else 'https'}://{host.upstream}",
        "kind": "" if sight is None else sight.kind.value,
        "healthy": sight is not None and sight.is_trusted(now),
        "because": "not looked at yet" if sight is None else sight.because,
        "draining": host.name in dispatcher.draining,
        "weight": host.weight,
        "loaded": [] if sight is None else sorted(sight.loaded),
        "slots": None if sight is None else sight.slots,
        "busy": None if sight is None else sight.busy,
        "conversations": len(held),
        "models": [
            {
                "name": model,
                "parallel": slots.parallel,
                "queue_max": slots.queue_max,
                "inflight": limiter.in_flight(host.name, model),
                "queued": limiter.queued(host.name, model),
                "ctx": None if sight is None else sight.contexts.get(model),
            }
            for model, slots in host.models.items()
        ],
    }
