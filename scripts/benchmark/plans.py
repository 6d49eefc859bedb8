"""What a load generator is told to do, and what it answers: JSON between two processes."""

import json
import math
from dataclasses import asdict, dataclass

from scripts.benchmark.figures import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One measurement.

    Attributes:
        path: Of the POST.
        body: Of the POST.
        clients: Connections at once.
        port: Where to ask, on 127.0.0.1; filled in for each peer.
        repeats: Each client asks again as soon as it has its answer; else each asks once.
        warm_s: Not counted; begins when every client has asked.
        measure_s: Counted. Without `repeats` at most so long: it ends when all are answered.
        ramp: Clients that start in one second.
        stamped: The events carry the time of their making: measure their delay.
        in_first: Warm-up begins only once every client has the first byte of its answer.
    """

    path: str
    body: str
    clients: int
    port: int = 0
    repeats: bool = True
    warm_s: float = 0.3
    measure_s: float = 1.0
    ramp: float = 4000.0
    stamped: bool = False
    in_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was counted within the measured time; times in microseconds."""

    seconds: float
    answers: int
    events: int
    errors: int
    bad_status: int
    reconnects: int
    latency_us: Spread
    first_byte_us: Spread
    delay_us: Spread
    own_cpu_s: float

    @property
    def answers_per_s(self) -> float:
        """Complete answers in a second."""
        return self.answers / self.seconds if self.seconds else math.nan

    @property
    def events_per_s(self) -> float:
        """Events in a second."""
        return self.events / self.seconds if self.seconds else math.nan


def plan_to_text(plan: Plan) -> str:
    """The plan as one line."""
    return json.dumps(asdict(plan))


def plan_from_text(text: str) -> Plan:
    """The plan of a line."""
    return Plan(**json.loads(text))


def result_to_text(result: Result) -> str:
    """The result as one line."""
    return json.dumps({"stage": "result", **asdict(result)})


def result_from_object(fields: dict[str, object]) -> Result:
    """The result of a decoded line."""
    spreads = ("latency_us", "first_byte_us", "delay_us")
    plain = {name: value for name, value in fields.items() if name not in ("stage", *spreads)}
    return Result(**plain, **{name: Spread(**fields[name]) for name in spreads})  # type: ignore[arg-type]  # our own JSON
