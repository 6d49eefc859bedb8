"""How many grants a second the scheduler gives, asked over its socket, with its real state and policies."""

import json
import subprocess
import sys
import time

from qmsup.control.client import Client
from scripts.benchmark.accounting import cpu_seconds
from scripts.benchmark.course import Course, Tallies
from scripts.benchmark.figures import Who
from scripts.benchmark.peers import Qmsup
from scripts.benchmark.programs import BenchError
from scripts.benchmark.targets import Row, Target, row

_PROCESSES = 2
_CROWD = 128
_LEAD_S = 1.0  # the requesters' start and warm-up


def measure(course: Course, qmsup: Qmsup) -> list[Row]:
    """With 128 requesters, and the round trip of a single one. The model is ready and below its limit."""
    with Client(qmsup.endpoint) as client:
        scheduler = int(client.ask("status")["pid"])
    tallies = Tallies()
    for _ in course.each_round("grants"):
        single = _run(course, qmsup, 1, 1)
        tallies["trip"].add(Who.QMSUP, single["p50_us"])
        crowd = _run(course, qmsup, _PROCESSES, _CROWD // _PROCESSES, scheduler)
        tallies["rate"].add(Who.QMSUP, crowd["per_s"])
        tallies["cpu"].add(Who.QMSUP, crowd["cpu_us"])
    return [
        row("grant round trip, 1 requester: p50", "us", tallies["trip"]),
        row(
            f"grants/s, {_CROWD} requesters",
            "1/s",
            tallies["rate"],
            Target(bound=25_000, at_most=False),
            note=f"{_PROCESSES} requesting processes share the cores with the scheduler",
        ),
        row(f"scheduler CPU per grant, {_CROWD} requesters", "us", tallies["cpu"]),
    ]


def _run(
    course: Course, qmsup: Qmsup, processes: int, requesters: int, scheduler: int | None = None
) -> dict[str, float]:
    seconds = course.seconds(2.0)
    argv = [sys.executable, "-m", "scripts.benchmark.requester", "--endpoint", qmsup.endpoint]
    argv += ["--model", "fake", "--requesters", str(requesters), "--seconds", str(seconds)]
    started = [
        course.programs.start("requester", argv, stdout=subprocess.PIPE) for _ in range(processes)
    ]
    cpu_rate = 0.0
    if scheduler is not None:
        time.sleep(_LEAD_S)
        before, began = cpu_seconds([scheduler]), time.monotonic()
        time.sleep(seconds * 0.8)
        cpu_rate = (cpu_seconds([scheduler]) - before) / (time.monotonic() - began)
    told = [_told(course, process, seconds) for process in started]
    per_s = sum(each["per_s"] for each in told)
    refused = sum(each["refused"] for each in told)
    if refused:
        course.troubles.append(f"grants: {refused:.0f} requests were refused")
    return {
        "per_s": per_s,
        "p50_us": told[0]["p50_us"],
        "cpu_us": cpu_rate / per_s * 1e6 if per_s else float("nan"),
    }


def _told(course: Course, process: subprocess.Popen[bytes], seconds: float) -> dict[str, float]:
    try:
        text, _ = process.communicate(timeout=seconds + 30)
        told: dict[str, float] = json.loads(text)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        raise BenchError(
            f"a requester gave no result:\n{course.programs.tail('requester')}"
        ) from None
    finally:
        course.programs.stop(process)
    return told
