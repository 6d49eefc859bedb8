"""Event streams in front of our own child: at full speed, at a steady rate, and many slow ones."""

from collections.abc import Sequence

from scripts.benchmark import wishes
from scripts.benchmark.course import Course, Tallies
from scripts.benchmark.figures import Tally, Who
from scripts.benchmark.generator import Measured
from scripts.benchmark.peers import Peer
from scripts.benchmark.plans import Plan
from scripts.benchmark.targets import Row, Target, row
from scripts.benchmark.wishes import Wish

_PATH = "/v1/chat/completions"
_STREAMS = 16
_STEADY_HZ = 625  # times 16: ten thousand events a second
_SLOW_STREAMS = 500
_SLOW_HZ = 50


def measure(course: Course, compared: Sequence[Peer]) -> list[Row]:
    """Rates, CPU per event, and the delay from an event's making to its arrival."""
    tallies = Tallies()
    for _ in course.each_round("streams"):
        for peer in compared:
            fast = course.measure("streams at full speed", peer, _plan(course, 0, _STREAMS, 1.0))
            tallies["fast rate"].add(peer.who, fast.result.events_per_s)
            _note_cpu(tallies["fast cpu"], peer, fast)
            steady = course.measure(
                "steady streams", peer, _plan(course, _STEADY_HZ, _STREAMS, 1.5)
            )
            tallies["steady rate"].add(peer.who, steady.result.events_per_s)
            tallies["steady p50"].add(peer.who, steady.result.delay_us.p50)
            _note_cpu(tallies["steady cpu"], peer, steady)
            slow = course.measure("many streams", peer, _plan(course, _SLOW_HZ, _SLOW_STREAMS, 2.5))
            pace = slow.result.events_per_s / (_SLOW_STREAMS * _SLOW_HZ) * 100
            tallies["slow pace"].add(peer.who, pace)
            tallies["slow p50"].add(peer.who, slow.result.delay_us.p50)
            tallies["slow p99"].add(peer.who, slow.result.delay_us.p99)
            _note_cpu(tallies["slow cpu"], peer, slow)
    return _rows(tallies)


def _plan(course: Course, hz: int, clients: int, seconds: float) -> Plan:
    return Plan(
        path=_PATH,
        body=wishes.body("fake", Wish(events=wishes.ENDLESS, hz=hz)).decode(),
        clients=clients,
        warm_s=0.3,
        measure_s=course.seconds(seconds),
        stamped=hz > 0,
        in_first=True,
    )


def _note_cpu(tally: Tally, peer: Peer, measured: Measured) -> None:
    if peer.who is not Who.DIRECT:
        tally.add(peer.who, measured.cpu_per_event_us)


def _rows(tallies: Tallies) -> list[Row]:
    fast, steady = f"{_STREAMS} streams at full speed", "10 000 events/s"
    slow = f"{_SLOW_STREAMS} x {_SLOW_HZ} events/s"
    return [
        row(
            f"{fast}: events/s",
            "1/s",
            tallies["fast rate"],
            note="asked directly, it is the tool's own limit that is reached",
        ),
        row(f"{fast}: CPU per event", "us", tallies["fast cpu"]),
        row(f"{steady}: reached", "1/s", tallies["steady rate"]),
        row(f"{steady}: delay p50", "us", tallies["steady p50"]),
        row(
            f"{steady}: CPU per event",
            "us",
            tallies["steady cpu"],
            Target(bound=1.5, against=Who.NGINX),
        ),
        row(
            f"{slow}: pace kept",
            "%",
            tallies["slow pace"],
            Target(bound=99.5, at_most=False),
        ),
        row(f"{slow}: delay p50", "us", tallies["slow p50"]),
        row(f"{slow}: delay p99", "us", tallies["slow p99"], Target(bound=1.2, against=Who.NGINX)),
        row(f"{slow}: CPU per event", "us", tallies["slow cpu"]),
    ]
