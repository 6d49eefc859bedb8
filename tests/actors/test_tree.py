import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pykka
import pytest
from typing_extensions import override

from qmsup.actors import tree as tree_module
from qmsup.actors.process_manager import ProcessManager
from qmsup.actors.tree import ProcessTree, end_actors
from qmsup.core.scheduling.effects import EnsureReady, Stop
from qmsup.core.scheduling.events import ProcessReady, ProcessStopped
from qmsup.ids import EventNumber, Incarnation, ListenerName, ModelId
from qmsup.spec import ListenerSpec, Spec
from qmsup.units import Seconds
from tests.support.children import Reports, fake_spec, is_alive, wait_until
from tests.support.servers import free_port

CAUSE = EventNumber(1)


@pytest.fixture
def reports(places: Path) -> Iterator[Reports]:
    yield Reports()
    end_actors()


def spec_of(*models: str, listens_on: int | None = None, **keys: int) -> Spec:
    listeners = (
        {}
        if listens_on is None
        else {
            ListenerName("main"): ListenerSpec(
                name=ListenerName("main"), host="127.0.0.1", port=listens_on
            )
        }
    )
    specs = [fake_spec(model=model) for model in models]
    return Spec(models={spec.id: spec for spec in specs}, listeners=listeners, **keys)  # type: ignore[arg-type]


def ensure(model: str, incarnation: int) -> EnsureReady:
    return EnsureReady(cause=CAUSE, model=ModelId(model), incarnation=Incarnation(incarnation))


def managers() -> list[pykka.ActorRef[ProcessManager]]:
    return pykka.ActorRegistry.get_by_class(ProcessManager)


def test_a_model_has_one_manager_from_when_it_is_first_wanted(reports: Reports) -> None:
    tree = ProcessTree(spec_of("a", "b"), reports)
    assert managers() == []

    tree.tell(ensure("a", 1))
    reports.wait_for(ProcessReady, 1)
    (first,) = managers()
    tree.tell(Stop(cause=CAUSE, model=ModelId("a"), incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)
    tree.tell(ensure("a", 2))
    reports.wait_for(ProcessReady, 2)
    assert managers() == [first]
    tree.tell(ensure("b", 3))
    reports.wait_for(ProcessReady, 3)

    assert len(managers()) == 2


def test_a_manager_that_ended_is_replaced(reports: Reports) -> None:
    tree = ProcessTree(spec_of("a"), reports)
    tree.tell(ensure("a", 1))
    ready = reports.wait_for(ProcessReady, 1)
    (first,) = managers()
    first.stop()
    assert not is_alive(ready.pid)

    tree.tell(ensure("a", 2))

    reports.wait_for(ProcessReady, 2)
    assert managers() != [first]


def test_listeners_ports_are_given_to_no_child(reports: Reports) -> None:
    start = free_port()
    tree = ProcessTree(spec_of("a", listens_on=start, start_port=start), reports)

    tree.tell(ensure("a", 1))

    upstream = reports.wait_for(ProcessReady, 1).upstream
    assert int(upstream.rpartition(":")[2]) > start


def test_a_port_that_one_model_has_by_its_configuration_is_given_to_no_other(
    reports: Reports,
) -> None:
    start = free_port()
    address = f"http://127.0.0.1:{start}"
    first = spec_of("a", start_port=start)
    owns = replace(fake_spec(model="owns"), upstream=address)
    tree = ProcessTree(replace(first, models={**first.models, owns.id: owns}), reports)
    tree.tell(ensure("a", 1))
    assert not reports.wait_for(ProcessReady, 1).upstream.endswith(f":{start}")

    later = replace(fake_spec(model="later"), upstream=f"http://127.0.0.1:{start + 2}")
    other = spec_of("a", "b", start_port=start)
    tree.apply(replace(other, models={**other.models, later.id: later}))
    tree.tell(ensure("b", 2))
    assert not reports.wait_for(ProcessReady, 2).upstream.endswith(f":{start + 2}")


def test_another_configuration_counts_from_the_next_start(reports: Reports) -> None:
    old, new = spec_of("a"), spec_of("a", "b")
    changed = replace(new.models[ModelId("a")], argv=(*fake_spec().argv, "--name", "other"))
    tree = ProcessTree(old, reports)
    tree.tell(ensure("a", 1))
    first = reports.wait_for(ProcessReady, 1)

    tree.apply(replace(new, models={**new.models, changed.id: changed}))

    assert is_alive(first.pid)
    tree.tell(Stop(cause=CAUSE, model=changed.id, incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)
    for number, model in ((2, "a"), (3, "b")):
        tree.tell(ensure(model, number))
    pid = reports.wait_for(ProcessReady, 2).pid
    assert b"--name\0other" in Path(f"/proc/{pid}/cmdline").read_bytes()
    reports.wait_for(ProcessReady, 3)


def test_a_removed_model_obeys_until_it_is_forgotten_and_its_manager_ends(
    reports: Reports,
) -> None:
    tree = ProcessTree(spec_of("a", "b"), reports)
    tree.tell(ensure("a", 1))
    reports.wait_for(ProcessReady, 1)
    (manager,) = managers()

    tree.apply(spec_of("b"))
    tree.keep_only({ModelId("a"), ModelId("b")})
    tree.tell(Stop(cause=CAUSE, model=ModelId("a"), incarnation=Incarnation(1)))
    reports.wait_for(ProcessStopped, 1)
    tree.keep_only({ModelId("b")})

    wait_until(lambda: not manager.is_alive())
    tree.apply(spec_of("a", "b"))
    tree.tell(ensure("a", 2))
    reports.wait_for(ProcessReady, 2)
    assert managers() != [manager]


def test_the_end_of_all_actors_is_the_end_of_all_children(reports: Reports) -> None:
    tree = ProcessTree(spec_of("a", "b"), reports)
    for number, model in enumerate(("a", "b"), 1):
        tree.tell(ensure(model, number))
    pids = [reports.wait_for(ProcessReady, number).pid for number in (1, 2)]

    assert end_actors()

    assert managers() == []
    assert not any(is_alive(pid) for pid in pids)
    assert end_actors()


class _Stuck(pykka.ThreadingActor):
    let_go = threading.Event()

    @override
    def on_stop(self) -> None:
        self.let_go.wait(30)


def test_an_actor_that_does_not_end_is_named_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tree_module, "_END_WITHIN", Seconds(0.05))
    stuck = _Stuck.start()

    assert not end_actors()

    (record,) = [r for r in caplog.records if r.message == "actor.does_not_end"]
    assert "_Stuck" in vars(record)["qmsup_fields"]["actor"]
    _Stuck.let_go.set()
    wait_until(lambda: not stuck.is_alive())
