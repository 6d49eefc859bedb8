"""What the reading verbs say: the core's views as bodies that JSON can hold (wire: PROTOCOL.md)."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict

from qmsup import __version__
from qmsup.actors import mishaps
from qmsup.actors.life import Life
from qmsup.core.scheduling import views
from qmsup.core.scheduling.state import State
from qmsup.core.vram.reading import Reading
from qmsup.errors import QmsupError
from qmsup.ids import ModelId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import MiB, Seconds

_NOTHING_SEEN = Reading()
_WITHOUT_CHILD = (views.ModelState.STOPPED, views.ModelState.FAILED)


class BadQuestionError(QmsupError):
    """A control question cannot be understood. The text says which part of it, and what to write."""


def reading(
    verb: str, state: State, spec: Spec, life: Life, now: Seconds, seen: Reading
) -> dict[str, object] | None:
    """The body of a reading verb's answer; None = there is no such verb here.

    Args:
        verb: which.
        state: the scheduler's.
        spec: the configuration in force.
        life: of the process.
        now: the monotonic clock.
        seen: what was read of the memory last.
    """
    match verb:
        case "status":
            return status(state, life)
        case "ps":
            return ps(state, spec, now, seen)
        case "running":
            return running(state, spec, now, seen)
        case "leases":
            return leases(state, now)
        case _:
            return None


def status(state: State, life: Life) -> dict[str, object]:
    """The scheduler process, its listeners' workers, and what of it has broken."""
    return {
        "pid": os.getpid(),
        "epoch": life.epoch,
        "version": __version__,
        "since": life.since,
        "config": str(life.config),
        "draining": state.is_draining,
        "listeners": [
            {
                "name": listener.name,
                "worker": listener.worker,
                "pid": listener.pid,
                "waiting": listener.waiting,
                "held": listener.held,
            }
            for listener in views.listeners(state)
        ],
        "mishaps": [asdict(mishap) for mishap in mishaps.told()],
    }


def ps(state: State, spec: Spec, now: Seconds, seen: Reading = _NOTHING_SEEN) -> dict[str, object]:
    """Every model, and the memory."""
    return {
        "models": [_row(view, seen) for view in views.models(state, spec, now)],
        "draining": state.is_draining,
        "vram_budget_mib": spec.vram_budget,
        "memory": memory(seen),
    }


def memory(seen: Reading) -> dict[str, object]:
    """What was read of the memory; what could not be is null."""
    return {
        "is_trusted": seen.is_trusted,
        "because": seen.because or None,
        "total_mib": seen.total,
        "used_mib": seen.used,
        "free_mib": seen.free,
        "ours_mib": sum(seen.held.values()) if seen.is_trusted else None,
        "foreign_mib": seen.foreign,
        "floor_mib": seen.floor,
        "ceiling_mib": seen.ceiling,
        "ram_total_mib": seen.ram_total,
        "ram_available_mib": seen.ram_available,
        "ram_ours_mib": sum(used.resident for used in seen.ram.values()),
        "cards": [
            {
                "uuid": share.card.uuid,
                "name": share.card.name,
                "total_mib": share.card.total,
                "used_mib": share.card.used,
                "ours_mib": share.ours,
            }
            for share in seen.shares
        ],
    }


def _held(view: views.ModelView, seen: Reading) -> MiB | None:
    return None if view.incarnation is None else seen.held.get(view.incarnation)


def _row(view: views.ModelView, seen: Reading) -> dict[str, object]:
    has_child = view.pid is not None
    return {
        "name": view.id,
        "state": view.state,
        "closing": view.closing or None,
        "pid": view.pid,
        "port": view.port,
        "vram_mib": (view.est_vram or None) if has_child else None,
        "vram_estimated_mib": view.estimated or None,
        "vram_measured_mib": view.measured,
        "vram_peak_mib": view.peak,
        "vram_held_mib": _held(view, seen),
        "ram_mib": view.ram,
        "ctx": None,
        "inflight": view.in_flight,
        "queued": view.queued,
        "hold_s": _seconds(view.hold_left),
        "ttl_s": _seconds(view.ttl_left),
        "pinned": view.is_pinned,
        "age_s": _seconds(view.age),
        "error": view.last_error or None,
    }


def _seconds(left: Seconds | None) -> float | None:
    return None if left is None else round(left, 3)


def running(
    state: State, spec: Spec, now: Seconds, seen: Reading = _NOTHING_SEEN
) -> dict[str, object]:
    """The models that have a child, with the fields that llama-swap's clients read and ours beside them."""
    return {
        "running": [
            {**_running(view, spec.models.get(view.id)), "vram_held_mib": _held(view, seen)}
            for view in views.models(state, spec, now)
            if view.state not in _WITHOUT_CHILD
        ]
    }


def _running(view: views.ModelView, spec: ModelSpec | None) -> dict[str, object]:
    return {
        "model": view.id,
        "state": view.state,
        "cmd": _command(spec, view.port) if spec is not None else "",
        "proxy": f"http://{view.upstream}" if view.upstream else "",
        "ttl": int(spec.ttl) if spec is not None else 0,
        "name": spec.name if spec is not None else "",
        "description": spec.description if spec is not None else "",
        "pid": view.pid,
        "port": view.port,
        "inflight": view.in_flight,
    }


def _command(spec: ModelSpec, port: int | None) -> str:
    """What runs, as it can be typed."""
    words = spec.argv if port is None else (w.replace("${PORT}", str(port)) for w in spec.argv)
    return shlex.join(words)


def leases(state: State, now: Seconds) -> dict[str, object]:
    """Who uses which model now."""
    return {
        "leases": [
            {
                "lease": lease.id,
                "model": lease.model,
                "kind": "job" if lease.is_job else "request",
                "owner": lease.owner,
                "purpose": lease.purpose,
                "ttl_s": _seconds(lease.ttl_left),
            }
            for lease in views.leases(state, now)
        ]
    }


def with_child(
    state: State, spec: Spec, now: Seconds, models: tuple[ModelId, ...]
) -> list[ModelId]:
    """Those of the models (none = all) that an unload will have to stop."""
    return [
        view.id
        for view in views.models(state, spec, now)
        if view.state not in _WITHOUT_CHILD and (not models or view.id in models)
    ]


def models_of(args: Mapping[str, object], spec: Spec) -> tuple[tuple[ModelId, ...], bool]:
    """The models (none = all) and the drain flag of an `unload`.

    Raises:
        BadQuestionError: an argument has the wrong shape.
    """
    names = args.get("models", [])
    drain = args.get("drain", False)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadQuestionError('unload: "models" must be a list of names; an empty one means all')
    if not isinstance(drain, bool):
        raise BadQuestionError('unload: "drain" must be true or false')
    return tuple(_resolved(name, spec) for name in names), drain


def model_of(verb: str, args: Mapping[str, object], spec: Spec) -> ModelId:
    """The model that a question is about.

    Raises:
        BadQuestionError: no name is given.
    """
    name = args.get("model")
    if not isinstance(name, str) or not name:
        raise BadQuestionError(f'{verb}: "model" must be the name of a model')
    return _resolved(name, spec)


def _resolved(name: str, spec: Spec) -> ModelId:
    # A name that is not configured is for the scheduler to refuse: it knows what is like it.
    found = spec.model_named(name)
    return found.id if found is not None else ModelId(name)
