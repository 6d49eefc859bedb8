"""How soon those who went away are noticed: clients that stream, clients that wait, and a whole worker."""

import http.client
import os
import signal
import time
from collections.abc import Sequence

from qmsup.control.client import Client
from scripts.benchmark import wishes
from scripts.benchmark.clients import Held
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who, median
from scripts.benchmark.notes import Notes
from scripts.benchmark.peers import Peer, Qmsup
from scripts.benchmark.programs import BenchError, ask
from scripts.benchmark.standin import StandIn
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import Wish

_LEAVERS = 60
_KILLS = 6
_EVENT = b"data: "  # comments come before it, while the client waits


def from_streams(course: Course, compared: Sequence[tuple[Peer, Notes]]) -> list[Row]:
    """From a client's close to the end of the connection to the child, in the middle of a silent stream."""
    course.say("clients that leave: streaming")
    middle, most = Tally(), Tally()
    for peer, notes in compared:
        notes.skip()
        times_ms = []
        for tag in range(1, course.many(_LEAVERS) + 1):
            client = Held(peer.port, wishes.body("fake", Wish(events=1, gate=True, tag=tag)))
            client.read_to(_EVENT)
            left = client.leave()
            times_ms.append((notes.wait("aborted", tag=tag)["at"] - left) / 1e6)
        middle.add(peer.who, median(times_ms))
        most.add(peer.who, max(times_ms))
    return [
        row("client gone -> child's connection closed: p50", "ms", middle, Target(bound=1.0)),
        row("client gone -> child's connection closed: max", "ms", most, Target(bound=5.0)),
    ]


def from_the_line(course: Course, qmsup: Qmsup) -> list[Row]:
    """From a waiting client's close to the moment when the scheduler counts it no more."""
    course.say("clients that leave: waiting")
    times_ms = []
    with (
        Client(qmsup.endpoint) as scheduler,
        Held(qmsup.main.port, wishes.body("single", Wish(events=1, gate=True))) as holder,
    ):
        holder.read_to(_EVENT)
        for _ in range(course.many(_LEAVERS)):
            waiter = Held(qmsup.main.port, wishes.body("single", Wish(events=1)))
            _await_line(scheduler, filled=True)
            left = waiter.leave()
            times_ms.append((_await_line(scheduler, filled=False) - left) / 1e6)
    middle, most = Tally(), Tally()
    middle.add(Who.QMSUP, median(times_ms))
    most.add(Who.QMSUP, max(times_ms))
    return [
        row(
            "client gone -> out of the line: p50",
            "ms",
            middle,
            Target(bound=1.0),
            note="asked of the scheduler over and over: it includes one such round trip",
        ),
        row("client gone -> out of the line: max", "ms", most, Target(bound=5.0)),
    ]


def _await_line(scheduler: Client, *, filled: bool) -> int:
    """When the scheduler said that somebody waits, or that nobody does: monotonic, in ns."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        workers = scheduler.ask("status")["listeners"]
        if any(worker["waiting"] for worker in workers) is filled:
            return time.monotonic_ns()
    raise BenchError(f"after 10 s the line is still {'empty' if filled else 'not empty'}")


def with_their_worker(course: Course, qmsup: Qmsup) -> list[Row]:
    """From the KILL of a worker whose client holds a model's one place to the grant for the next in line."""
    course.say("workers that are killed")
    worker = StandIn(qmsup.endpoint)
    times_ms = []
    for _ in range(course.many(_KILLS)):
        _await_listener(qmsup.solo)
        with Held(qmsup.solo, wishes.body("single", Wish(events=1, gate=True))) as holder:
            holder.read_to(_EVENT)
            behind = worker.ask("single")
            worker.wait_for_place(behind, 1)
            victim = _solo_worker(qmsup)
            killed = time.monotonic_ns()
            os.kill(victim, signal.SIGKILL)
            times_ms.append((worker.wait_for_grant(behind) - killed) / 1e6)
            worker.finish(behind)
    _await_listener(qmsup.solo)
    worker.close()
    middle, most = Tally(), Tally()
    middle.add(Who.QMSUP, median(times_ms))
    most.add(Who.QMSUP, max(times_ms))
    return [
        row("worker killed -> its lease freed: p50", "ms", middle, Target(bound=10.0)),
        row("worker killed -> its lease freed: max", "ms", most),
    ]


def _solo_worker(qmsup: Qmsup) -> int:
    with Client(qmsup.endpoint) as client:
        workers = [
            w for w in client.ask("status")["listeners"] if w["name"] == "solo" and w["held"]
        ]
    if len(workers) != 1:
        raise BenchError(f"one worker of the listener 'solo' should hold a request, not {workers}")
    return int(workers[0]["pid"])


def _await_listener(port: int) -> None:
    deadline = time.monotonic() + 15.0
    while time.monotonic() < deadline:
        try:
            if ask(port, "GET", "/health", timeout_s=2.0)[0] == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    raise BenchError(f"the listener on port {port} did not come back after its worker was killed")
