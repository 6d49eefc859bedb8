"""How things stand, as gauges. Made in the scheduler's thread when somebody asks for the metrics."""

from collections import Counter
from collections.abc import Iterator, Mapping

from qmsup.actors import metrics
from qmsup.actors.exposition import Gauges
from qmsup.actors.tallies import Labels
from qmsup.core.scheduling import views
from qmsup.core.scheduling.state import State
from qmsup.core.vram.reading import Reading
from qmsup.spec import Spec
from qmsup.units import MiB, Seconds

_BYTES = 1024 * 1024
_REQUEST = "request"
_MOST_PURPOSES = 16
_OTHERS = "other"
_LONGEST_PURPOSE = 60
_ALL_CARDS = "all"

Series = Iterator[tuple[Labels, float]]


def gauges_of(
    state: State, spec: Spec, now: Seconds, seen: Reading, up: Mapping[str, bool]
) -> Gauges:
    """Every gauge that has a number.

    Args:
        state: the scheduler's.
        spec: the configuration in force.
        now: the monotonic clock.
        seen: what was read of the memory last; what could not be has no number.
        up: whether each host can be used.
    """
    models = views.models(state, spec, now)
    return {
        metrics.INFLIGHT.name: {(model.id,): model.in_flight for model in models},
        metrics.LINE_LENGTH.name: {
            (): sum(len(group.waiters) for group in state.line.groups.values())
        },
        metrics.HOLDS.name: {(): sum(model.hold_left is not None for model in models)},
        metrics.LEASES.name: dict(_leases(state, now)),
        metrics.MODEL_STATE.name: {
            (model.id, kind): float(model.state is kind)
            for model in models
            for kind in views.ModelState
        },
        metrics.VRAM.name: dict(_vram(state, seen)),
        metrics.RAM.name: dict(_ram(seen)),
        metrics.FOOTPRINT.name: dict(_footprints(models)),
        metrics.HOST_UP.name: {(host,): float(is_up) for host, is_up in up.items()},
    }


def _leases(state: State, now: Seconds) -> Series:
    leases = views.leases(state, now)
    jobs = Counter(lease.purpose[:_LONGEST_PURPOSE] for lease in leases if lease.is_job)
    yield (_REQUEST,), sum(not lease.is_job for lease in leases)
    # A job may say of itself what it likes, and a name in a metric is kept for long.
    shown = dict(jobs.most_common(_MOST_PURPOSES))
    for purpose, count in shown.items():
        if purpose != _REQUEST:
            yield (purpose or "job",), count
    if rest := jobs.total() - sum(shown.values()):
        yield (_OTHERS,), rest


def _vram(state: State, seen: Reading) -> Series:
    for share in seen.shares:
        gpu = share.card.uuid
        total, used = share.card.total, share.card.used
        yield from _sizes(gpu, total=total, used=used, ours=share.ours, foreign=share.others)
    if state.memory.ceiling is not None:
        yield (_ALL_CARDS, "ceiling"), state.memory.ceiling * _BYTES


def _sizes(gpu: str, **sizes: MiB | None) -> Series:
    for kind, size in sizes.items():
        if size is not None:
            yield (gpu, kind), size * _BYTES


def _ram(seen: Reading) -> Series:
    for kind, size in (("total", seen.ram_total), ("available", seen.ram_available)):
        if size is not None:
            yield (kind,), size * _BYTES
    yield ("ours",), sum(used.resident for used in seen.ram.values()) * _BYTES


def _footprints(models: tuple[views.ModelView, ...]) -> Series:
    for model in models:
        if model.estimated:
            yield (model.id, "estimated"), model.estimated * _BYTES
        if model.measured is not None:
            yield (model.id, "measured"), model.measured * _BYTES
