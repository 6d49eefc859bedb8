"""Plays a card's day from a JSON file, in real time:

    python -m tests.fakes.gpu_timeline timeline.json FOLDER

    {"steps": [{"at": 0, "cards": [{"uuid": "GPU-1", "total": 24576, "base": 500}]},
               {"at": 3, "uses": [{"pid": 4242, "used": 8192, "kind": "cg"}]},
               {"at": 9, "init": 9}, {"at": 12, "init": 0, "uses": []}]}

A step names fields of `State` and holds until another names them anew; `at` is in seconds from the beginning.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.gpu import FakeGpu, State


@dataclass(frozen=True, slots=True)
class Timeline:
    """When what is shown, by time."""

    moments: tuple[tuple[float, State], ...]

    @classmethod
    def parse(cls, told: Mapping[str, Any]) -> "Timeline":
        """As the JSON has it."""
        state = State()
        moments = []
        for step in sorted(told["steps"], key=lambda step: float(step["at"])):
            state = state.changed({key: value for key, value in step.items() if key != "at"})
            moments.append((float(step["at"]), state))
        return cls(tuple(moments))

    def at(self, seconds: float) -> State:
        """What is shown then."""
        return next(
            (state for at, state in reversed(self.moments) if at <= seconds), self.moments[0][1]
        )

    def play(self, gpu: FakeGpu) -> None:
        """Show each state when its time has come; returns with the last one."""
        began = time.monotonic()
        for at, state in self.moments:
            time.sleep(max(0.0, began + at - time.monotonic()))
            gpu.show(state)


if __name__ == "__main__":
    Timeline.parse(json.loads(Path(sys.argv[1]).read_text())).play(FakeGpu(Path(sys.argv[2])))
