"""Ports that somebody else has: before the child could bind them, or in its place."""

import errno
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pykka
import pytest
from typing_extensions import override

from qmsup.actors.process_manager import ProcessManager
from qmsup.core.scheduling.effects import EnsureReady
from qmsup.core.scheduling.events import ProcessFailed, ProcessReady, ProcessStarting
from qmsup.ids import EventNumber, Incarnation, ModelId
from qmsup.processes.ports import PortPool
from qmsup.spec import Kind, ModelSpec
from tests.support.children import FIRST_PORT, LAST_PORT, Reports, fake_command, fake_spec

Manager = pykka.ActorRef[ProcessManager]
Manage = Callable[[ModelSpec, PortPool], Manager]
ENSURE = EnsureReady(cause=EventNumber(1), model=ModelId("m"), incarnation=Incarnation(1))


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def manage(places: Path, reports: Reports) -> Iterator[Manage]:
    refs: list[Manager] = []

    def start(spec: ModelSpec, ports: PortPool) -> Manager:
        refs.append(ProcessManager.start(spec=spec, report=reports, ports=ports))
        return refs[-1]

    yield start
    for ref in refs:
        ref.stop()


class Thief(PortPool):
    """Another program takes the first ports at once, before the child that was given them can."""

    def __init__(self, start: int, *, times: int = 1, sends: bool = False) -> None:
        super().__init__(start)
        self.taken: list[int] = []
        self._left = times
        self._loot = ExitStack()
        self._server = self._loot.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._sends = sends

    @override
    def take(self) -> int:
        port = super().take()
        if self._left:
            try:
                self._loot.enter_context(self._steal(("127.0.0.1", port)))
            except (
                OSError
            ) as error:  # a connection of a minute ago stands in its way, and in no child's
                if error.errno != errno.EADDRINUSE:
                    raise
                return self.take()
            self._left -= 1
        self.taken.append(port)
        return port

    def _steal(self, address: tuple[str, int]) -> socket.socket:
        if not self._sends:
            return socket.create_server(address)
        client = socket.create_connection(self._server.getsockname(), source_address=address)
        client.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
        )  # leaves no trace
        return client

    def __enter__(self) -> "Thief":
        return self

    def __exit__(self, *_: object) -> None:
        self._loot.close()


def test_a_child_that_lost_its_port_to_another_gets_a_new_one(
    manage: Manage, reports: Reports, places: Path
) -> None:
    owner = manage(fake_spec("--lose-port-once", str(places / "lost")), PortPool(FIRST_PORT))

    owner.tell(ENSURE)

    ready = reports.wait_for(ProcessReady, 1)
    starts = [event for event in reports.events if isinstance(event, ProcessStarting)]
    assert len(starts) == 2
    assert starts[0].port != starts[1].port
    assert ready.upstream == f"127.0.0.1:{starts[1].port}"


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("words", ["", "2>/dev/null"])
def test_a_port_that_is_stolen_before_the_child_has_bound_it_is_given_up_for_another(
    manage: Manage, reports: Reports, words: str, sends: bool
) -> None:
    # Not where a child of a test before had connections: the port of one that sends must be wholly unused.
    with Thief(LAST_PORT - 2, sends=sends) as ports:
        line = " ".join((*fake_command(), words, "|| exit 1"))
        owner = manage(replace(fake_spec(), argv=("sh", "-c", line)), ports)

        owner.tell(ENSURE)

        ready = reports.wait_for(ProcessReady, 1)
        assert [e.port for e in reports.events if isinstance(e, ProcessStarting)] == ports.taken
        assert len(ports.taken) == 2
        assert ready.upstream == f"127.0.0.1:{ports.taken[-1]}"


def test_ports_that_are_stolen_again_and_again_end_the_start_with_the_reason(
    manage: Manage, reports: Reports
) -> None:
    with Thief(FIRST_PORT, times=9) as ports:
        owner = manage(fake_spec(), ports)

        owner.tell(ENSURE)

        assert "its port was taken" in reports.wait_for(ProcessFailed, 1).reason
        assert len(ports.taken) == 3


def test_an_answer_of_somebody_else_on_a_fixed_port_is_no_readiness(
    manage: Manage, reports: Reports
) -> None:
    with other_server() as port:
        spec = fake_spec("--load-seconds", "3600", kind=Kind.GENERIC)
        # A child that takes long, and a stranger who answers 200 on the port that it was to have.
        argv = (*spec.argv[:3], "--port", str(LAST_PORT), *spec.argv[5:])
        owner = manage(
            replace(spec, argv=argv, upstream=f"http://127.0.0.1:{port}"), PortPool(FIRST_PORT)
        )

        owner.tell(ENSURE)

        reason = reports.wait_for(ProcessFailed, 1).reason
        assert f"port {port} is answered by another program" in reason
        assert "ProcessReady" not in reports.kinds()


@contextmanager
def other_server() -> Iterator[int]:
    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()
