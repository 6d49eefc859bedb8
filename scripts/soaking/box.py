"""A whole box under load whose parts are killed. After each round it must be as if nothing had happened."""

import random
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from scripts.soaking import census, faults, look
from scripts.soaking.clients import Ended, ask
from scripts.soaking.faults import Part, Plan, Taken
from scripts.soaking.found import FoundError
from scripts.soaking.tally import Tally
from tests.support.box import Box, fake, serving

MODELS = {
    "plain": fake("--name plain --event-interval 0.01"),
    "slow": fake("--name slow --event-interval 0.02 --load-seconds 0.4", concurrencyLimit=2),
    "tooled": fake("--name tooled --finish-reason tool_calls --load-seconds 0.1"),
    "parent": fake("--name parent --event-interval 0.01 --grandchild own-session"),
    "deaf": fake("--name deaf --ignore-term --event-interval 0.01", unloadTimeout=0.3),
}
"""Of 3 GB each, so two of them fit."""
LISTENERS = {"main": {"workers": 2}, "side": {"workers": 1}}
_BUDGET_GB = 7
_QUIET_WITHIN_S = 30.0
_CALM_ROUNDS = 15
"""Every other so many rounds only children are killed, so that the rest lives long enough to be seen growing."""


def soak(seed: int, is_over: Callable[[], bool], tally: Tally) -> None:
    """Round after round; one at the least.

    Raises:
        FoundError: at the first thing that must not be. The whole log of the box is kept then.
    """
    run: _Run | None = None
    try:
        with serving(MODELS, listeners=LISTENERS, vramBudgetGB=_BUDGET_GB) as box:
            run = _Run(box, seed, tally)
            run.until(is_over)
    except AssertionError as error:
        raise FoundError(
            f"{str(error).splitlines()[0]} (seed {seed}, round {run.number if run else 0})",
            story=run.story() if run else str(error),
            again=f"scripts/soak --system --seed {seed} --minutes {tally.seconds() / 60 + 1:.0f}"
            " (the same faults at the same times; what else the machine does is not the same)",
        ) from error
    for line in run.ledger.longest():
        print(f"    {line}")


class _Run:
    """One box and what happened to it."""

    def __init__(self, box: Box, seed: int, tally: Tally) -> None:
        self.number = 0
        self.ledger = census.Ledger()
        self._box = box
        self._seed = seed
        self._tally = tally
        self._schedulers_killed = 0
        self._killed: set[int] = set()
        self._known: set[census.Member] = set()
        self._ended: list[Ended] = []
        self._taken: list[Taken] = []
        self._earlier: list[Taken] = []
        self._kept = ""
        self._workers = sum(listener["workers"] for listener in LISTENERS.values())

    def until(self, is_over: Callable[[], bool]) -> None:
        """Play rounds until it is time."""
        try:
            self._settle()
            while True:
                self._round()
                if is_over():
                    break
            growing = self.ledger.growth()
            assert not growing, f"grows: {'; '.join(growing)}"
        except AssertionError:
            self._keep_the_log()
            raise

    def story(self) -> str:
        """The last round: what was killed, how everybody ended, and where the log is."""
        marks = {True: "   ", False: "!! "}
        return "\n".join(
            [
                "Killed:",
                *(f"    {taken}" for taken in self._taken),
                "Clients (!! = may not end so):",
                *(f"{marks[self._may(ended)]} {ended}" for ended in self._ended),
                f"The whole log: {self._kept}",
            ]
        )

    def _round(self) -> None:
        is_calm = self.number // _CALM_ROUNDS % 2 == 1
        self.number += 1
        dice = random.Random(f"{self._seed}/{self.number}")
        parts = {Part.CHILD} if is_calm else set(Part)
        began = time.monotonic()
        self._play(faults.plan(dice, MODELS, LISTENERS, parts), began)
        wrong = [ended for ended in self._ended if not self._may(ended)]
        assert not wrong, f"a client ended as none may: {wrong[0]}"
        self._settle()
        took = time.monotonic() - began
        self._earlier = [
            Taken(fault=t.fault, at_s=t.at_s - took, pid=t.pid)
            for t in (*self._earlier, *self._taken)
            if t.at_s - took > -60
        ]
        self._tally.add("rounds")

    def _play(self, plan: Plan, began: float) -> None:
        self._ended, self._taken = [], []
        threads = [
            threading.Thread(target=self._ask, args=(asking, began)) for asking in plan.askings
        ]
        for thread in threads:
            thread.start()
        for fault in plan.faults:
            time.sleep(max(0.0, began + fault.at_s - time.monotonic()))
            if (taken := faults.strike(self._box, fault, began)) is not None:
                self._taken.append(taken)
                self._killed.add(taken.pid)
                self._schedulers_killed += fault.part is Part.SCHEDULER
                self._tally.add(f"killed {fault.part}")
        for thread in threads:
            thread.join()
        self._ended.sort(key=lambda ended: ended.began_s)
        for ended in self._ended:
            self._tally.add(f"{ended.ending} {ended.code}".strip().replace(" ", ":"))

    def _ask(self, asking: Any, began: float) -> None:
        time.sleep(max(0.0, began + asking.at_s - time.monotonic()))
        self._ended.append(ask(self._box.ports[asking.listener], asking, began))

    def _may(self, ended: Ended) -> bool:
        return faults.is_allowed(ended, self._taken, self._earlier)

    def _settle(self) -> None:
        """Wait until the box is whole and quiet; then look at what it is made of."""
        deadline = time.monotonic() + _QUIET_WITHIN_S
        while unrest := look.unrest(self._box, self._workers):
            assert time.monotonic() < deadline, f"not quiet after {_QUIET_WITHIN_S} s: {unrest}"
            time.sleep(0.1)
        epoch = look.ask(self._box, "status")[0]["epoch"]
        assert epoch == 1 + self._schedulers_killed, "a scheduler ended that nobody killed"
        found = census.members(self._box)
        lost = {m.name for m in self._known if m not in found and m.pid not in self._killed}
        assert not lost, f"ended though nobody killed it: {', '.join(sorted(lost))}"
        self._known = set(found)
        for member, process in found.items():
            self.ledger.enter(member, census.size_of(process))

    def _keep_the_log(self) -> None:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"soak-{self._seed}-", suffix=".log", delete=False
        ) as kept:
            kept.write(self._box.log())
            self._kept = kept.name
