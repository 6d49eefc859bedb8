"""A new life of the scheduler among what a former one left running.

Children that are proved ours go on serving. What the listeners' workers have in flight is known only once they have
greeted, so until each has, or is gone, nothing is loaded and nothing stopped to make room: a model that looks idle may
be in the middle of an answer. What is ready is granted meanwhile.
"""

from dataclasses import replace

from qmsup.core.scheduling import draining, leases, residency, ttl
from qmsup.core.scheduling.holds import Conversation
from qmsup.core.scheduling.inheritance import AdoptedChild, KeptJob, Recovered
from qmsup.core.scheduling.records import Child, Missing, Model, Phase
from qmsup.core.scheduling.state import State
from qmsup.ids import ModelId, WorkerId
from qmsup.units import Seconds

_NOBODY = Conversation("")


def begin(state: State, event: Recovered) -> None:
    """Take over what is left."""
    if event.workers:
        at = Seconds(state.now + state.spec.scheduler.listener_grace)
        state.missing = Missing(set(event.workers))
        state.missing.alarm = state.deadlines.add(at, state.missing)
    for adopted in event.children:
        _adopt(state, state.models[adopted.model], adopted)
    for name in event.order:
        if (model := state.models.get(name)) is not None:
            state.touch(model)
    for name in event.pins:
        if (model := state.models.get(name)) is not None:
            model.is_pinned = True
    state.is_draining = event.is_draining
    residency.renew_policy(state)
    for job in event.jobs:
        _keep(state, job)
    for name, left in event.holds:
        _hold(state, name, left)
    for model in state.models.values():
        ttl.watch(state, model)
    children = ", ".join(child.model for child in event.children)
    state.record("scheduler.recovered", because=children or "no child")
    draining.tell_again(state)


def heard_of(state: State, worker: WorkerId) -> None:
    """A worker told what it has, or is gone."""
    missing = state.missing
    if missing is None:
        return
    missing.workers.discard(worker)
    if not missing.workers:
        _complete(state, missing, "every worker was heard")


def time_is_up(state: State, missing: Missing) -> None:
    """Workers that live and do not greet are waited for no longer than any silent one."""
    _complete(state, missing, f"{len(missing.workers)} workers were not heard")


def _complete(state: State, missing: Missing, because: str) -> None:
    state.deadlines.cancel(missing.alarm)
    state.missing = None
    state.record("scheduler.complete", because=because)
    for model in state.models.values():
        ttl.watch(state, model)
        residency.stop_when_idle(state, model)
    state.stir_all()


def _adopt(state: State, model: Model, adopted: AdoptedChild) -> None:
    spec = model.spec
    if not adopted.is_as_configured:
        spec = replace(spec, argv=(), est_vram=adopted.est_vram)
    model.child = Child(
        adopted.incarnation,
        spec,
        state.now,
        phase=Phase.READY,
        pid=adopted.pid,
        port=adopted.port,
        upstream=adopted.upstream,
        total_slots=adopted.total_slots,
        context=adopted.context,
        has_served=True,
        born=Seconds(state.now - adopted.age),
    )
    model.context = adopted.context
    model.since = model.idle_since = state.now
    state.settle(model)
    state.record("model.adopted", model=model.id, because=f"pid {adopted.pid}")


def _keep(state: State, job: KeptJob) -> None:
    model = state.models.get(job.model)
    if model is not None and model.is_ready and job.left > 0:
        leases.keep(state, model, job)


def _hold(state: State, name: ModelId, left: Seconds) -> None:
    model = state.models.get(name)
    if model is not None and model.is_ready and not model.leases and left > 0:
        # Whose hold it was is forgotten, so nobody's next request takes it away: it ends by time.
        state.hold(model, _NOBODY, Seconds(state.now + left))
