"""How soon everybody who waits hears that the line has moved."""

import select
import time
from collections.abc import Sequence

from qmsup.control.client import Client
from scripts.benchmark import peers, wishes
from scripts.benchmark.clients import Held
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who, percentile
from scripts.benchmark.notes import Notes
from scripts.benchmark.programs import BenchError, ask
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import Wish

_WAITING = 2000
_MODEL = "narrow"
_PATIENCE_S = 60.0
_EVENT = b"data: "  # comments come before it, while the client waits
_PLACE = b": waiting"


def measure(course: Course) -> list[Row]:
    """The one place of a model gets free; from then until each of those behind has read its new place."""
    course.say(f"places: {_WAITING} clients wait")
    file = course.programs.folder / "places.notes"
    models = {
        _MODEL: peers.model(
            peers.upstream_command("${PORT}", notes=file), vram_gb=0.1, limit=1, kind="generic"
        )
    }
    qmsup = peers.start_qmsup(course.programs, "places", models)
    with Client(qmsup.endpoint) as client:
        client.ask("load", model=_MODEL)
    child = Notes(file).wait("ready")["port"]
    gated = wishes.body(_MODEL, Wish(events=1, gate=True))
    with Held(qmsup.main.port, gated) as holder:
        holder.read_to(_EVENT)
        waiting = [Held(qmsup.main.port, gated) for _ in range(_WAITING)]
        _hear(waiting)  # where each stands at first
        released = time.monotonic_ns()
        ask(child, "GET", "/release")
        told_ms = [(at - released) / 1e6 for at in _hear(waiting, most=_WAITING - 1)]
    for waiter in waiting:
        waiter.leave()
    course.programs.stop(qmsup.process)
    middle, most = Tally(), Tally()
    middle.add(Who.QMSUP, percentile(told_ms, 0.5))
    most.add(Who.QMSUP, max(told_ms))
    about = f"place free -> {_WAITING} waiting are told"
    return [
        row(f"{about}: p50", "ms", middle),
        row(f"{about}: last", "ms", most, Target(bound=1000.0)),
    ]


def _hear(waiting: Sequence[Held], most: int | None = None) -> list[int]:
    """When each, or so many of them, read its next place: monotonic, in ns."""
    poll = select.epoll()
    by_fd = {waiter.fileno(): waiter for waiter in waiting}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    told: list[int] = []
    deadline = time.monotonic() + _PATIENCE_S
    while len(told) < (len(waiting) if most is None else most):
        if time.monotonic() > deadline:
            raise BenchError(f"only {len(told)} of {len(waiting)} who wait heard of their place")
        for fd, _ in poll.poll(1.0):
            if by_fd[fd].read_some(_PLACE):
                told.append(time.monotonic_ns())
                poll.unregister(fd)
    poll.close()
    return told
