"""What is lost when the scheduler is killed under streams and waiters, and how soon there are grants again."""

import http.client
import os
import signal
import time
from contextlib import ExitStack

from qmsup.control.client import Client
from qmsup.errors import QmsupError
from scripts.benchmark import peers, wishes
from scripts.benchmark.accounting import cpu_seconds, started_at
from scripts.benchmark.clients import Held
from scripts.benchmark.course import Course, Tallies
from scripts.benchmark.figures import Who
from scripts.benchmark.peers import Qmsup
from scripts.benchmark.programs import BenchError, ask
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import Wish

_STREAMS, _WAITERS = 50, 20
_HZ, _EVENTS = 25, 300
"""Twelve seconds: longer than any restart should take."""
_KILLS = 3
_EVENT, _WAITS, _END = b'data: {"t"', b": qm-status: waiting", b"\r\n0\r\n\r\n"
_BACK_WITHIN_S = 30.0


def measure(course: Course) -> list[Row]:
    """Each time a fresh client asks right after the KILL, too: for a model that is ready and below its limit."""
    course.say(f"the scheduler's death: {_STREAMS} streams, {_WAITERS} waiters")
    models = {
        name: peers.model(
            peers.upstream_command("${PORT}"), vram_gb=0.1, limit=limit, kind="generic"
        )
        for name, limit in (("many", 4096), ("single", 1))
    }
    qmsup = peers.start_qmsup(course.programs, "death", models)
    with Client(qmsup.endpoint) as client:
        for name in models:
            client.ask("load", model=name)
    tallies = Tallies()
    for _ in range(course.many(_KILLS)):
        _kill(course, qmsup, tallies)
    course.programs.stop(qmsup.process)
    nothing = Target(bound=0.0)
    return [
        row("scheduler killed: events of streams lost", "", tallies["events"], nothing),
        row("scheduler killed: clients lost", "", tallies["clients"], nothing),
        row("scheduler killed: children that ended", "", tallies["children"], nothing),
        row(
            "scheduler started again -> first new grant",
            "ms",
            tallies["grant"],
            Target(bound=1000.0),
            note=f"under {_STREAMS} streams of {_HZ} events/s and {_WAITERS} waiters; most of it is the"
            " interpreter's start",
        ),
        row("scheduler started again: its CPU until then", "ms", tallies["cpu"]),
    ]


def _kill(course: Course, qmsup: Qmsup, tallies: Tallies) -> None:
    port = qmsup.main.port
    with ExitStack() as stack:
        streaming = wishes.body("many", Wish(events=_EVENTS, hz=_HZ))
        streams = [stack.enter_context(Held(port, streaming)) for _ in range(_STREAMS)]
        holder = stack.enter_context(Held(port, wishes.body("single", Wish(events=1, gate=True))))
        for client in (*streams, holder):
            client.read_to(_EVENT)
        waiting = wishes.body("single", Wish(events=3))
        waiters = [stack.enter_context(Held(port, waiting)) for _ in range(_WAITERS)]
        for client in waiters:
            client.read_to(_WAITS)
        before, scheduler = _children(qmsup)

        os.kill(scheduler, signal.SIGKILL)
        status, text = ask(port, "POST", "/v1/chat/completions", wishes.body("many"))
        granted = time.clock_gettime(time.CLOCK_BOOTTIME)
        if status != http.client.OK:
            course.troubles.append(f"asked after the scheduler's death: {status}: {text[:200]!r}")
        after, scheduler = _children(qmsup)
        tallies["cpu"].add(Who.QMSUP, cpu_seconds([scheduler]) * 1000)
        tallies["grant"].add(Who.QMSUP, (granted - started_at(scheduler)) * 1000)
        ask(before["single"][1], "GET", "/release")
        lost = sum(not _ends_well(client) for client in (*streams, holder, *waiters))
        events = sum(stream.got.count(_EVENT) for stream in streams)
    tallies["clients"].add(Who.QMSUP, lost)
    tallies["events"].add(Who.QMSUP, _STREAMS * _EVENTS - events)
    tallies["children"].add(Who.QMSUP, sum(after[name] != before[name] for name in before))


def _ends_well(client: Held) -> bool:
    try:
        client.read_to(_END)
    except (BenchError, OSError):
        return False
    return b'"error"' not in client.got


def _children(qmsup: Qmsup) -> tuple[dict[str, tuple[int, int]], int]:
    """Each model's pid and port, and the scheduler's pid, once one answers."""
    deadline = time.monotonic() + _BACK_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with Client(qmsup.endpoint) as client:
                models = client.ask("ps")["models"]
                scheduler = int(client.ask("status")["pid"])
        except QmsupError:
            continue
        return {m["name"]: (int(m["pid"] or 0), int(m["port"] or 0)) for m in models}, scheduler
    raise BenchError("no scheduler came back after it was killed")
