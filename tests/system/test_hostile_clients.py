"""Control clients and strangers without measure: everybody else is served, and nothing of theirs stays."""

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import zmq

from qmsup.transport import context, curve
from qmsup.wire import codec, listening
from tests.support.box import Box, fake, serving, until
from tests.support.servers import free_port

pytestmark = pytest.mark.system


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def box(tmp_path: Path, port: int) -> Iterator[Box]:
    curve.make_keys(tmp_path, "server")
    control = {
        "bind": f"tcp://127.0.0.1:{port}",
        "curve": {"secretKey": f"{tmp_path}/server.key_secret", "clients": str(tmp_path)},
    }
    with serving({"m": fake()}, control=control) as box:
        yield box
        context.destroy()


def _scheduler(box: Box) -> psutil.Process:
    return next(p for p in box.parts() if "scheduler" in p.cmdline())


@contextmanager
def _peer(box: Box, name: bytes) -> Iterator[zmq.Socket[bytes]]:
    peer = context.current().socket(zmq.DEALER)
    peer.setsockopt(zmq.ROUTING_ID, name)
    peer.setsockopt(zmq.SNDHWM, 0)
    peer.connect(f"ipc://{box.folder}/run/scheduler.sock")
    yield peer
    peer.close(linger=0)


def _question(verb: str, id_: str, **args: object) -> bytes:
    return json.dumps({"v": 1, "id": id_, "verb": verb, "args": args}).encode()


def _serves(box: Box) -> None:
    assert box.run("ps").returncode == 0
    assert box.chat("m", max_tokens=1).status_code == 200


def test_who_floods_is_alone_with_it(box: Box) -> None:
    dice = random.Random(5)
    hello = codec.encode(
        listening.Hello(version=99, worker="w-odd", listener="main", pid=1)  # type: ignore[arg-type]
    )
    _serves(box)
    scheduler = _scheduler(box)
    before = scheduler.num_fds()
    with _peer(box, b"ctl-flood") as flood, _peer(box, b"w-odd") as odd:
        for number in range(10_000):
            flood.send(_question("ps", str(number)))
            odd.send(dice.randbytes(dice.randint(0, 60)) if number else hello)
        odd.send_multipart([b"\xc1"] * 50_000)
        _serves(box)
        for number in range(3000):
            flood.send(_question("lease", f"l{number}", model="m", ttl_s=1, lease=f"l{number}"))
        _serves(box)
    for number in range(200):
        with _peer(box, b"ctl-%d" % number) as gone:
            gone.send(_question("subscribe", "1"))
            gone.send(_question("load", "2", model="m"))
    _serves(box)

    until(lambda: scheduler.num_fds() <= before + 2, what="flat again")
    assert _scheduler(box) == scheduler
    assert box.log().count('"worker.unreadable"') < 100


def test_strangers_at_the_door_take_no_descriptors(box: Box, port: int) -> None:
    _serves(box)
    scheduler = _scheduler(box)
    before = scheduler.num_fds()
    with ExitStack() as strangers:
        for number in range(600):
            with suppress(OSError):  # all were sent away, and the door is shut for a moment
                stranger = socket.create_connection(("127.0.0.1", port), timeout=5.0)
                strangers.enter_context(stranger)
                stranger.sendall(
                    b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" if number % 2 else b"GET"
                )
        _serves(box)
        until(lambda: scheduler.num_fds() <= before + 300, what="few of them inside")
    until(lambda: scheduler.num_fds() <= before + 2, what="flat again")
    assert _scheduler(box) == scheduler


LEAK = """
import contextlib, socket, sys
held, refusals = [], 0
while len(held) < 3000 and refusals < 50:
    for path in sys.argv[1:]:
        held.append(socket.socket(socket.AF_UNIX))
        try:
            held[-1].connect(path)
        except OSError:
            refusals += 1
print("leaked", flush=True)
sys.stdin.read()
"""
"""A program that closes nothing, twice as much as the box may have open."""


def test_a_program_that_leaks_connections_is_alone_with_it() -> None:
    limited = f"ulimit -n 1024; exec {sys.executable} -m qmsup serve"
    with serving({"m": fake()}, command=lambda _: ["bash", "-c", limited]) as box:
        _serves(box)
        scheduler = _scheduler(box)
        before = scheduler.num_fds()
        sockets = [f"{box.folder}/run/{name}.sock" for name in ("scheduler", "feed", "jobs")]
        with subprocess.Popen(
            [sys.executable, "-c", LEAK, *sockets], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == b"leaked\n"
            until(lambda: box.run("ps").returncode == 0, what="the door is open")
            _serves(box)
            program.kill()

        until(lambda: scheduler.num_fds() <= before + 4, what="flat again")
        assert _scheduler(box) == scheduler
        assert "peer.too_many_connections" in box.log()
        assert str(program.pid) in box.log()
