"""What qmsup costs while nobody asks anything: heartbeats, readings of the memory, looks at two ready children."""

import time

from scripts.benchmark import peers
from scripts.benchmark.accounting import cpu_seconds
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who
from scripts.benchmark.programs import BenchError, ask
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import body

_SETTLES_S = 12.0
"""For ten seconds after a model came or went, the memory is read more often."""
_WATCHED_S, _GLANCED_S = 60.0, 6.0


def measure(course: Course) -> list[Row]:
    """The CPU time of all its processes, the models' servers left out."""
    watched_s = _GLANCED_S if course.quick else _WATCHED_S
    course.say(f"idle for {watched_s:g} s with two models loaded")
    models = {
        f"tiny-{letter}": peers.model(
            peers.real_command(course.models / f"tiny-{letter}.gguf", "${PORT}"),
            vram_gb=0.4,
            limit=peers.HTTP_THREADS,
            kind="llama-server",
        )
        for letter in "ab"
    }
    qmsup = peers.start_qmsup(course.programs, "idle", models)
    for name in models:
        status, text = ask(qmsup.main.port, "POST", "/v1/chat/completions", body(name))
        if status != 200:
            raise BenchError(f"{name} answers {status}: {text.decode(errors='replace')[:200]}")
    time.sleep(_SETTLES_S)
    pids = qmsup.main.pids()
    began, before_s = time.monotonic(), cpu_seconds(pids)
    time.sleep(watched_s)
    used_s, took_s = cpu_seconds(pids) - before_s, time.monotonic() - began
    course.programs.stop(qmsup.process)
    share = Tally()
    share.add(Who.QMSUP, used_s / took_s * 100)
    return [
        row(
            "idle, two models loaded: CPU of all of it",
            "% of a core",
            share,
            Target(bound=0.5),
            note=f"{len(pids)} processes, over {watched_s:g} s; the models' servers left out",
        )
    ]
