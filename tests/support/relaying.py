"""An engine at work in a thread: real sockets on both sides, a link to a scheduler that a test directs."""

import itertools
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from qmsup import places
from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.listener.link import Link
from qmsup.listener.relay.engine import Engine, RelayOptions
from qmsup.listener.relay.order import RelayOrder
from qmsup.transport import context
from qmsup.units import Seconds
from tests.support.granting import PATIENCE, GrantingScheduler, granting_scheduler

T = TypeVar("T")
_numbers = itertools.count(1)


def order(
    body: bytes | BinaryIO = b"",
    *,
    length: int | None = None,
    streaming: bool = False,
    method: str = "POST",
) -> RelayOrder:
    """A request for model `m`."""
    if length is None:
        assert isinstance(body, bytes)
        length = len(body)
    return RelayOrder(
        request=RequestId(f"q-{next(_numbers)}"),
        model=ModelId("m"),
        method=method,
        head=b"%b /v1/x?secret=1 HTTP/1.1\r\nContent-Length: %d\r\nConnection: close\r\n"
        % (method.encode(), length),
        body=body,
        streaming=streaming,
    )


class Relaying:
    """The loop's thread, and doors into it.

    Attributes:
        ends: for each client that was held to its end, whether its connection lives on.
    """

    def __init__(self, options: RelayOptions, grace: Seconds) -> None:
        self._options = options
        self._grace = grace
        self._calls: list[tuple[Callable[[], object], Future[object]]] = []
        self._door = os.eventfd(0, os.EFD_NONBLOCK)
        self._stop = False
        self._ready = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.ends: list[bool] = []
        self.turns = 0
        self._thread = threading.Thread(target=self._run, name="relaying")
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def hold(
        self,
        wanted: RelayOrder,
        *,
        is_http11: bool = True,
        keeps_alive: bool = True,
        send_buffer: int | None = None,
    ) -> socket.socket:
        """Have the engine hold a client; returns the client's end."""
        client, ours = self.connection()
        if send_buffer is not None:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)

        def on_end(lives: bool) -> None:
            self.ends.append(lives)
            if lives:
                self.engine.discard(ours.fileno(), ours)

        self.do(
            lambda: self.engine.hold(
                ours, wanted, is_http11=is_http11, keeps_alive=keeps_alive, give_back=on_end
            )
        )
        return client

    def connection(self) -> tuple[socket.socket, socket.socket]:
        """Both ends of a TCP connection; ours does not block."""
        client = socket.create_connection(self._server.getsockname())
        client.settimeout(PATIENCE)
        ours, _ = self._server.accept()
        ours.setblocking(False)
        return client, ours

    def do(self, call: Callable[[], T]) -> T:
        """Run something in the loop's thread."""
        future: Future[object] = Future()
        self._calls.append((call, future))
        os.eventfd_write(self._door, 1)
        return future.result(PATIENCE)  # type: ignore[return-value]  # it is what `call` returned

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a state of the loop."""
        wait_until(lambda: self.do(condition))

    def stop(self) -> None:
        """End the loop; a second time does nothing."""
        if self._stop:
            return
        self._stop = True
        os.eventfd_write(self._door, 1)
        self._thread.join(PATIENCE)
        self._server.close()
        os.close(self._door)

    def _run(self) -> None:
        self.link = Link(
            ListenerName("main"), endpoint=places.scheduler_endpoint(), grace=self._grace
        )
        self.engine = Engine(self.link, self._options)
        self.engine.watch(self._door, select.EPOLLIN, self._take_calls)
        self._ready.set()
        while not self._stop:
            self.engine.turn(0.2)
            self.turns += 1
        self.engine.close()

    def _take_calls(self, _event: int) -> None:
        os.eventfd_read(self._door)
        while self._calls:
            call, future = self._calls.pop(0)
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001 - it is the test's to see
                future.set_exception(error)


@contextmanager
def ending_context() -> Iterator[None]:
    """End the process's ZeroMQ context after everything inside has closed its sockets."""
    try:
        yield
    finally:
        context.destroy()


@contextmanager
def relaying(
    options: RelayOptions | None = None, *, grace: Seconds = Seconds(15.0)
) -> Iterator[Relaying]:
    """An engine for as long as the block. Needs the `places` fixture, and to stand in `ending_context`."""
    Path(places.runtime_dir()).mkdir(exist_ok=True, parents=True)
    engine = Relaying(options or RelayOptions(access_log=False), grace)
    try:
        yield engine
    finally:
        engine.stop()


@contextmanager
def relaying_with_scheduler(
    options: RelayOptions | None = None, *, grace: Seconds = Seconds(15.0)
) -> Iterator[tuple[Relaying, GrantingScheduler]]:
    """Both, acquainted."""
    Path(places.runtime_dir()).mkdir(exist_ok=True, parents=True)
    with (
        ending_context(),
        granting_scheduler(places.scheduler_endpoint()) as scheduler,
        relaying(options, grace=grace) as engine,
    ):
        yield engine, scheduler


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to this"
        time.sleep(0.005)


def read_all(client: socket.socket) -> bytes:
    """Everything until the other side closes."""
    pieces = []
    with client:
        while piece := client.recv(1 << 20):
            pieces.append(piece)
    return b"".join(pieces)


def read_until(client: socket.socket, marker: bytes) -> bytes:
    """Everything up to and with a marker, and what came with it."""
    data = b""
    while marker not in data:
        piece = client.recv(65536)
        assert piece, f"closed after {data[-300:]!r}"
        data += piece
    return data
