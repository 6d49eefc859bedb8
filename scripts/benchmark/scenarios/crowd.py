"""Two thousand clients at once on two workers, streaming or waiting: memory, threads, and that all are served."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from qmsup.control.client import Client
from scripts.benchmark import generator, peers, wishes
from scripts.benchmark.accounting import resident_kib, threads
from scripts.benchmark.clients import Held
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who
from scripts.benchmark.notes import Notes
from scripts.benchmark.peers import Qmsup
from scripts.benchmark.plans import Plan, Result
from scripts.benchmark.programs import BenchError, ask
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import Wish

_CLIENTS = 2000
_FIRST_FEW = 50  # so that what is made once is there
_MODEL = "held"
_PATIENCE_S = 30.0
_EVENT = b"data: "  # comments come before it, while the client waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Of the two workers and the scheduler, at one moment."""

    workers_kib: int
    scheduler_kib: int
    threads: int


def measure(course: Course) -> list[Row]:
    """Held streams, then a line of waiters, each with a qmsup that has served nobody before.

    Memory that a process once used and freed stays with it, and the next crowd would hide in it.
    """
    rows = []
    for name, hold in (("streaming", _hold_streams), ("waiting", _hold_line)):
        course.say(f"a crowd: {_CLIENTS} clients {name}")
        file = course.programs.folder / f"{name}.notes"
        command = peers.upstream_command("${PORT}", notes=file)
        limit = _CLIENTS * 2 if name == "streaming" else 1
        models = {_MODEL: peers.model(command, vram_gb=0.1, limit=limit, kind="generic")}
        qmsup = peers.start_qmsup(course.programs, name, models)
        with Client(qmsup.endpoint) as client:
            client.ask("load", model=_MODEL)
            child = Notes(file).wait("ready")["port"]
            hold(course, qmsup, client, child, _FIRST_FEW)
            rows += _rows(name, *hold(course, qmsup, client, child, _CLIENTS))
        course.programs.stop(qmsup.process)
    return rows


def _hold_streams(
    course: Course, qmsup: Qmsup, client: Client, child: int, clients: int
) -> tuple[Size, Size, Result]:
    plan = Plan(
        port=qmsup.main.port,
        path="/v1/chat/completions",
        body=wishes.body(_MODEL, Wish(events=1, gate=True)).decode(),
        clients=clients,
        repeats=False,
        in_first=True,
        measure_s=_PATIENCE_S,
        ramp=2000,
    )
    return _hold(course, client, plan, "first", lambda: ask(child, "GET", "/release"))


def _hold_line(
    course: Course, qmsup: Qmsup, client: Client, child: int, clients: int
) -> tuple[Size, Size, Result]:
    plan = Plan(
        port=qmsup.main.port,
        path="/v1/chat/completions",
        body=wishes.body(_MODEL, Wish(events=2)).decode(),
        clients=clients,
        repeats=False,
        measure_s=_PATIENCE_S,
        ramp=2000,
    )
    with Held(qmsup.main.port, wishes.body(_MODEL, Wish(events=1, gate=True))) as holder:
        holder.read_to(_EVENT)

        def release() -> None:
            ask(child, "GET", "/release")

        return _hold(course, client, plan, "asked", release)


def _hold(
    course: Course, client: Client, plan: Plan, full: str, release: Callable[[], object]
) -> tuple[Size, Size, Result]:
    before = _size(client)
    sizes: list[Size] = []

    def look(stage: str) -> None:
        if stage == full:
            _await_known(client, plan.clients)
            sizes.append(_size(client))
            release()

    measured = generator.measure(course.programs, plan, at_stage=look)
    return before, sizes[0], measured.result


def _await_known(client: Client, clients: int) -> None:
    """Until the scheduler has heard of all of them."""
    deadline = time.monotonic() + _PATIENCE_S
    known = 0
    while time.monotonic() < deadline:
        known = sum(worker["waiting"] + worker["held"] for worker in _main_workers(client))
        if known >= clients:
            return
        time.sleep(0.1)
    raise BenchError(f"only {known} of {clients} clients reached the scheduler in time")


def _main_workers(client: Client) -> list[dict[str, int]]:
    return [worker for worker in client.ask("status")["listeners"] if worker["name"] == "main"]


def _size(client: Client) -> Size:
    status = client.ask("status")
    workers = [worker["pid"] for worker in status["listeners"] if worker["name"] == "main"]
    return Size(
        workers_kib=sum(resident_kib(pid) for pid in workers),
        scheduler_kib=resident_kib(status["pid"]),
        threads=max(threads(pid) for pid in workers),
    )


def _rows(name: str, before: Size, full: Size, result: Result) -> list[Row]:
    def single(value: float) -> Tally:
        return Tally({Who.QMSUP: [value]})

    served = result.answers - result.bad_status
    crowd = f"{_CLIENTS} clients {name}"
    grown = _CLIENTS - _FIRST_FEW  # the memory of the first few was there before, and is used again
    workers = (full.workers_kib - before.workers_kib) / grown
    scheduler = (full.scheduler_kib - before.scheduler_kib) / grown
    return [
        row(f"{crowd}: served", "", single(served), Target(bound=_CLIENTS, at_most=False)),
        row(f"{crowd}: memory each in the workers", "KiB", single(workers), Target(bound=8.0)),
        row(f"{crowd}: memory each in the scheduler", "KiB", single(scheduler)),
        row(f"{crowd}: threads of a worker", "", single(full.threads)),
        row(f"{crowd}: all answered after", "s", single(result.seconds)),
    ]
