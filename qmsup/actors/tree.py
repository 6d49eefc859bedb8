"""Which threads exist: the main thread (signals), the scheduler actor, one process manager per model in use.

Two more write to disk, the journal's and the state's, and one keeps books of requests that are over. Two watch the
memory: the telemetry actor, which wakes every two seconds while children run, and the one that reads for it, which a
driver may keep for as long as it likes.
One looks after jobs, and waits for those who bring them.
A process manager's thread sleeps in its inbox until a message, its child's end or a deadline. From the first reload
on there is one more, which reads the configuration file.
"""

import time
from collections.abc import Callable, Container

import pykka

from qmsup.actors.process_manager import AdoptChild, KeepChild, ProcessManager, SpecChanged
from qmsup.core.scheduling.effects import AbortStart, EnsureReady, Stop
from qmsup.core.scheduling.events import Event
from qmsup.ids import ModelId
from qmsup.log import Log
from qmsup.processes.child import Child
from qmsup.processes.command import named_ports
from qmsup.processes.ports import PortPool
from qmsup.spec import ModelSpec, Spec
from qmsup.units import Seconds

_END_WITHIN = Seconds(10.0)
_log = Log("actors")


class ProcessTree:
    """The process managers, each started when its model is first wanted."""

    def __init__(self, spec: Spec, report: Callable[[Event], None]) -> None:
        """Nothing is started yet.

        Args:
            spec: the models.
            report: takes what happens to children; called in the managers' threads.
        """
        self._specs: dict[ModelId, ModelSpec] = dict(spec.models)
        self._report = report
        self._ports = PortPool(spec.start_port, reserved=named_ports(spec))
        self._managers: dict[ModelId, pykka.ActorRef[ProcessManager]] = {}

    def tell(self, order: EnsureReady | Stop | AbortStart) -> None:
        """Pass an order to the model's manager."""
        self._manager_of(order.model).tell(order)

    def adopt(self, child: Child) -> None:
        """Have the model's manager go on with a child of a former scheduler."""
        self._manager_of(ModelId(child.record.model)).tell(AdoptChild(child))

    def keep_children(self) -> None:
        """Leave ready children running when the actors end."""
        for manager in self._managers.values():
            if manager.is_alive():
                manager.tell(KeepChild())

    def apply(self, spec: Spec) -> None:
        """Take over another configuration. What is no longer in it is kept until `keep_only`: it may still run."""
        for model in spec.models.values():
            manager = self._managers.get(model.id)
            if manager is not None and self._specs.get(model.id) != model and manager.is_alive():
                manager.tell(SpecChanged(spec=model))
        self._specs.update(spec.models)
        self._ports.reserve(named_ports(spec))

    def keep_only(self, models: Container[ModelId]) -> None:
        """End the managers of all other models, which have no child any more."""
        for model in [model for model in self._specs if model not in models]:
            del self._specs[model]
            manager = self._managers.pop(model, None)
            if manager is not None and manager.is_alive():
                manager.stop(block=False)

    def _manager_of(self, model: ModelId) -> pykka.ActorRef[ProcessManager]:
        manager = self._managers.get(model)
        if manager is None or not manager.is_alive():
            # A manager that failed has ended its child and reported so; the next order gets a fresh one.
            manager = ProcessManager.start(
                spec=self._specs[model], report=self._report, ports=self._ports
            )
            self._managers[model] = manager
        return manager


def end_actors() -> bool:
    """End every actor of this process, all at once; a manager ends its child on the way.

    Returns:
        False when a thread goes on: it was waited for in vain, and is named in the log.
    """
    # An actor is dead to others before its `on_stop` has run: only the answer to this first stop waits for that.
    endings = [(ref, ref.stop(block=False)) for ref in pykka.ActorRegistry.get_all()]
    deadline = time.monotonic() + _END_WITHIN
    have_ended = True
    for ref, ending in endings:
        try:
            ending.get(timeout=max(0.0, deadline - time.monotonic()))
        except pykka.Timeout:
            have_ended = False
            _log.error("actor.does_not_end", actor=str(ref), within_s=_END_WITHIN)
    return have_ended
