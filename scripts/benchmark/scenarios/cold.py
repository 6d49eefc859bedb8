"""From "the child is ready" to "the request reached the child", for loads of different length."""

from scripts.benchmark import peers, wishes
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Tally, Who, percentile
from scripts.benchmark.notes import Notes
from scripts.benchmark.programs import ask
from scripts.benchmark.targets import Row, Target, row

_LOADS_MS = (30, 200, 700, 1500)
_CYCLES = 6


def measure(course: Course) -> list[Row]:
    """Models that do not fit together are asked in turn, so each request waits for a fresh child.

    The child notes both times itself: when it stops answering 503, and when the first request is there.
    """
    course.say("child ready to request there: starting")
    files = {f"cold-{load}": course.programs.folder / f"cold-{load}.notes" for load in _LOADS_MS}
    models = {
        f"cold-{load}": peers.model(
            peers.upstream_command("${PORT}", notes=files[f"cold-{load}"], load_ms=load),
            vram_gb=0.6,
            limit=8,
            kind="generic",
        )
        for load in _LOADS_MS
    }
    qmsup = peers.start_qmsup(course.programs, "cold", models)
    notes = {name: Notes(file) for name, file in files.items()}
    delays_ms: list[float] = []
    for _ in range(course.many(_CYCLES)):
        delays_ms += [_ask_cold(course, qmsup.main.port, name, notes[name]) for name in models]
    course.say(f"child ready to request there: {len(delays_ms)} loads")
    course.programs.stop(qmsup.process)
    middle, most = Tally(), Tally()
    middle.add(Who.QMSUP, percentile(delays_ms, 0.5))
    most.add(Who.QMSUP, max(delays_ms))
    loads = ", ".join(str(load) for load in _LOADS_MS)
    return [
        row(
            "child ready -> request there: p50",
            "ms",
            middle,
            Target(bound=25.0),
            note=f"a child that answers 503 for {loads} ms, then 200; it notes both times itself",
        ),
        row("child ready -> request there: max", "ms", most),
    ]


def _ask_cold(course: Course, port: int, model: str, notes: Notes) -> float:
    notes.skip()
    status, text = ask(port, "POST", "/v1/chat/completions", wishes.body(model))
    if status != 200:
        course.troubles.append(f"cold start of {model}: status {status}: {text[:200]!r}")
    ready = notes.wait("ready")["at"]
    return (notes.wait("asked")["at"] - ready) / 1e6
