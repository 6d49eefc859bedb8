"""Running a load generator from the benchmark, and reading clocks at the moments it names."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from scripts.benchmark.accounting import cpu_seconds
from scripts.benchmark.plans import Plan, Result, plan_to_text, result_from_object
from scripts.benchmark.programs import BenchError, Programs

_SLACK_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A result, and the CPU time that what was measured used meanwhile."""

    result: Result
    cpu_s: float

    @property
    def cpu_per_answer_us(self) -> float:
        """CPU time for one answer."""
        return self.cpu_s / self.result.answers * 1e6 if self.result.answers else float("nan")

    @property
    def cpu_per_event_us(self) -> float:
        """CPU time for one event."""
        return self.cpu_s / self.result.events * 1e6 if self.result.events else float("nan")


def measure(
    programs: Programs,
    plan: Plan,
    pids: Sequence[int] = (),
    at_stage: Callable[[str], None] | None = None,
) -> Measured:
    """Runs the plan to its end.

    Args:
        programs: Starts the process.
        plan: What to do.
        pids: The processes whose CPU time is taken.
        at_stage: Called with each stage's name as it is reached; the generator goes on meanwhile.

    Raises:
        BenchError: The generator ended without a result, or hangs.
    """
    process = programs.start(
        "load",
        [sys.executable, "-m", "scripts.benchmark.load", plan_to_text(plan)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        return _follow(process.stdout, pids, at_stage or (lambda _: None), plan)
    except BenchError as error:
        raise BenchError(f"{error}:\n{programs.tail('load')}") from None
    finally:
        process.stdout.close()
        programs.stop(process)


def _follow(
    lines: IO[bytes], pids: Sequence[int], at_stage: Callable[[str], None], plan: Plan
) -> Measured:
    deadline = time.monotonic() + plan.warm_s + plan.measure_s + _SLACK_S
    before = after = 0.0
    for line in lines:
        told = json.loads(line)
        stage: str = told["stage"]
        if stage == "measuring":
            before = cpu_seconds(pids)
        elif stage == "measured":
            after = cpu_seconds(pids)
        elif stage == "result":
            return Measured(result=result_from_object(told), cpu_s=after - before)
        at_stage(stage)
        if time.monotonic() > deadline:
            break
    raise BenchError("the load generator gave no result")
