"""The first event of a life that is not the first: what a former one left, in the core's words."""

from dataclasses import replace

from qmsup.actors.standing import Former
from qmsup.actors.workers import Workers
from qmsup.core.scheduling.inheritance import AdoptedChild, Recovered
from qmsup.ids import Incarnation, ModelId
from qmsup.processes import procfs
from qmsup.processes.child import Child
from qmsup.processes.records import digest_of
from qmsup.spec import Spec
from qmsup.units import MiB, Seconds


def recovered(
    former: Former | None,
    survivors: tuple[Child, ...],
    spec: Spec,
    workers: Workers,
    now: Seconds,
) -> Recovered | None:
    """What is left; None = nothing.

    Args:
        former: how things stood.
        survivors: children that live on; each is of a model of `spec`.
        spec: the configuration in force.
        workers: from now on they watch the workers that may have something in flight on a survivor.
        now: the scheduler's clock.
    """
    if former is None and not survivors:
        return None
    living = former.workers if former is not None and survivors else ()
    return replace(
        Recovered() if former is None else former.event,
        children=tuple(_adopted(child, spec) for child in survivors),
        workers=tuple(each.worker for each in living if workers.expect(each.worker, each.pid, now)),
    )


def _adopted(child: Child, spec: Spec) -> AdoptedChild:
    record = child.record
    model = spec.models[ModelId(record.model)]
    host = f"[{record.host}]" if ":" in record.host else record.host
    return AdoptedChild(
        model=model.id,
        incarnation=Incarnation(record.incarnation),
        pid=record.pid,
        port=record.port,
        upstream=f"{host}:{record.port}",
        total_slots=record.total_slots,
        context=record.context,
        is_as_configured=record.command == digest_of(model),
        est_vram=MiB(record.est_vram),
        age=procfs.age_of(record.start_ticks),
    )
