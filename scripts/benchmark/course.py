"""What every scenario is given: how long to measure, where to say how far it is, and the peers."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.benchmark import generator
from scripts.benchmark.figures import Tally
from scripts.benchmark.generator import Measured
from scripts.benchmark.peers import Peer
from scripts.benchmark.plans import Plan
from scripts.benchmark.programs import Programs


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One run of the benchmark.

    Attributes:
        programs: Starts and stops what is measured.
        models: Folder with the two tiny models `tiny-a.gguf` and `tiny-b.gguf`.
        rounds: How often each figure is taken from each peer, in turn.
        quick: Short measurements, to see that all works rather than to learn a number.
        with_qmsup: False measures the others alone.
        troubles: What went wrong in a measurement without ending the run.
        about: Figures about the tool and the run, by name.
    """

    programs: Programs
    models: Path
    rounds: int
    quick: bool
    with_qmsup: bool
    began: float = field(default_factory=time.monotonic)
    troubles: list[str] = field(default_factory=list)
    about: dict[str, float] = field(default_factory=dict)

    def seconds(self, full: float) -> float:
        """The length of a measurement that takes `full` seconds in a full run."""
        return full * 0.4 if self.quick else full

    def many(self, full: int) -> int:
        """How often something is repeated that a full run does `full` times."""
        return max(2, full // 3) if self.quick else full

    def each_round(self, what: str) -> Iterator[int]:
        """The rounds, each announced."""
        for number in range(1, self.rounds + 1):
            self.say(f"{what}: round {number} of {self.rounds}")
            yield number

    def measure(self, what: str, peer: Peer, plan: Plan) -> Measured:
        """Runs a plan against a peer; errors and refusals are told under the table."""
        measured = generator.measure(self.programs, replace(plan, port=peer.port), peer.pids())
        result = measured.result
        if result.errors or result.bad_status:
            self.troubles.append(
                f"{what}, {peer.who}: {result.errors} connections broke and {result.bad_status} answers "
                f"were no 200, of {result.answers + result.errors}"
            )
        return measured

    def say(self, text: str) -> None:
        """A line of progress, on stderr, with the time since the start."""
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", file=sys.stderr, flush=True)


class Tallies(dict[str, Tally]):
    """Tallies by name, made when first asked for."""

    def __missing__(self, name: str) -> Tally:
        tally = self[name] = Tally()
        return tally
