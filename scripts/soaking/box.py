"""A whole box under load to whose parts things are done. After each round it must be as if nothing had happened."""

import heapq
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.soaking import blame, census, faults, look, muddle
from scripts.soaking.claims import Claims
from scripts.soaking.clients import Asking, Ended, ask
from scripts.soaking.disk import Disk
from scripts.soaking.faults import Kind, Part, Plan, Stakes, Taken
from scripts.soaking.found import FoundError
from scripts.soaking.muddle import Muddle
from scripts.soaking.onlookers import Onlooker
from scripts.soaking.striking import Hands
from scripts.soaking.tally import Tally
from tests.support.box import Box, fake, serving
from tests.support.rendering import renderer

MODELS = {
    "plain": fake("--name plain --event-interval 0.01"),
    "slow": fake("--name slow --event-interval 0.02 --load-seconds 0.4", concurrencyLimit=2),
    "tooled": fake("--name tooled --finish-reason tool_calls --load-seconds 0.1"),
    "parent": fake("--name parent --event-interval 0.01 --grandchild own-session"),
    "deaf": fake("--name deaf --ignore-term --event-interval 0.01", unloadTimeout=0.3),
    "paint": renderer("--name paint"),
}
"""Of 3 GB each, so two of them fit."""
LISTENERS = {"main": {"workers": 2}, "side": {"workers": 1}}
_STAKES = Stakes(models=MODELS, painters=("paint",), listeners=LISTENERS)
_FIT = 2
_BUDGET_GB = 7
_OFFER_S = 4.0
"""Longer than a message and its answer may be under way (3 s): who is frozen for longer comes too late."""
_KEYS: dict[str, Any] = {
    "vramBudgetGB": _BUDGET_GB,
    "schedulerGraceMs": blame.GRACE_S * 1000,
    "scheduler": {
        "listenerGraceMs": blame.LISTENER_GRACE_S * 1000,
        "offerTimeoutMs": _OFFER_S * 1000,
        "holdMs": 700,
    },
}
_QUIET_WITHIN_S = 60.0
_SPOILED_JOB_S = 130.0
"""A job that a scheduler was asking for when it was killed is nobody's: its lease runs out by itself."""
_WILD_ROUNDS, _CALM_ROUNDS = 25, 15
"""In turn. In calm ones only children are hurt, so that the rest lives long enough to be seen growing."""


def soak(seed: int, is_over: Callable[[], bool], tally: Tally, *, longest_s: float = 11.0) -> None:
    """Round after round; one of each kind at the least.

    Args:
        seed: the same one plans the same rounds.
        is_over: asked after each round.
        tally: counts what was done, and how all who asked ended.
        longest_s: no freeze is longer.

    Raises:
        FoundError: at the first thing that must not be. The whole log of the box is kept then.
    """
    run: _Run | None = None
    try:
        with _surroundings(random.Random(f"{seed}/messages")) as (box, hands):
            run = _Run(box, hands, seed, tally, longest_s)
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
    print(f"    {run.told()}")


@contextmanager
def _surroundings(dice: random.Random) -> Iterator[tuple[Box, Hands]]:
    """A box whose messages and whose disk are in our hands."""
    with ExitStack() as stack:
        disks: list[Disk] = []
        muddles: list[Muddle] = []

        def command(folder: Path) -> Sequence[str]:
            front, behind = muddle.lay(folder)
            muddles.append(stack.enter_context(Muddle(front, behind, dice)))
            disk = Disk(folder / "state")
            if disk.mount():
                disks.append(disk)
                stack.callback(disk.unmount)
            return [sys.executable, "-m", "scripts.soaking.stage", str(front.parent)]

        with serving(MODELS, listeners=LISTENERS, command=command, **_KEYS) as box:
            yield box, Hands(box, muddles[0], disks[0] if disks else None)


class _Run:
    """One box and what happened to it."""

    def __init__(self, box: Box, hands: Hands, seed: int, tally: Tally, longest_s: float) -> None:
        self.number = 0
        self.ledger = census.Ledger()
        self._box = box
        self._hands = hands
        self._seed = seed
        self._tally = tally
        self._longest_s = longest_s
        self._epoch = 1
        self._killed: set[int] = set()
        self._known: set[census.Member] = set()
        self._ended: list[Ended] = []
        self._taken: list[Taken] = []
        self._earlier: list[Taken] = []
        self._kept = ""
        self._workers = sum(listener["workers"] for listener in LISTENERS.values())
        self._claims = Claims(box.process.pid, _FIT)
        self._onlookers = [Onlooker(port) for port in box.ports.values()]

    def until(self, is_over: Callable[[], bool]) -> None:
        """Play rounds until it is time."""
        try:
            self._settle()
            while True:
                self._round()
                if is_over() and self.number >= len(Kind):
                    break
            growing = self.ledger.growth()
            assert not growing, f"grows: {'; '.join(growing)}"
        except AssertionError:
            self._keep_the_log()
            raise
        finally:
            self._claims.close()
            for onlooker in self._onlookers:
                onlooker.close()

    def told(self) -> str:
        """What came of all that was done, and how full the box was, for people."""
        claims = self._claims
        return (
            f"{self._hands.told()}; {claims.most_seen} of {_FIT} servers side by side"
            f" at the most, in {claims.looks} looks;"
            f" {sum(each.events for each in self._onlookers)} events seen"
        )

    def story(self) -> str:
        """The last round: what was done, how everybody ended, and where the log is."""
        marks = {True: "   ", False: "!! "}
        return "\n".join(
            [
                "Done:",
                *(f"    {taken}" for taken in self._taken),
                "Clients (!! = may not end so):",
                *(f"{marks[self._may(ended)]} {ended}" for ended in self._ended),
                f"The whole log: {self._kept}",
            ]
        )

    def _round(self) -> None:
        is_calm = self.number % (_WILD_ROUNDS + _CALM_ROUNDS) >= _WILD_ROUNDS
        kind = tuple(Kind)[self.number % len(Kind)]
        self.number += 1
        dice = random.Random(f"{self._seed}/{self.number}")
        stakes = replace(_STAKES, first=kind, longest_s=self._longest_s)
        if is_calm:
            stakes = replace(stakes, parts=(Part.CHILD,))
        began = time.monotonic()
        self._play(faults.plan(dice, stakes), began)
        wrong = [ended for ended in self._ended if not self._may(ended)]
        assert not wrong, f"a client ended as none may: {wrong[0]}"
        self._settle()
        took = time.monotonic() - began
        self._earlier = [
            replace(t, at_s=t.at_s - took)
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
        self._strike(plan, began)
        for thread in threads:
            thread.join()
        self._ended.sort(key=lambda ended: ended.began_s)
        for ended in self._ended:
            self._tally.add(f"{ended.ending} {ended.code}".strip().replace(" ", ":"))

    def _strike(self, plan: Plan, began: float) -> None:
        """Do all that is planned, and undo it in its time."""
        lasting: list[tuple[float, int, Taken]] = []

        def lift_until(at_s: float) -> None:
            while lasting and lasting[0][0] <= at_s:
                until_s, _, taken = heapq.heappop(lasting)
                _sleep_until(began + until_s)
                self._hands.lift(taken)

        try:
            for number, fault in enumerate(plan.faults):
                lift_until(fault.at_s)
                _sleep_until(began + fault.at_s)
                if (taken := self._hands.strike(fault, began)) is not None:
                    self._note(taken)
                    heapq.heappush(lasting, (taken.until_s, number, taken))
        finally:
            lift_until(float("inf"))

    def _note(self, taken: Taken) -> None:
        self._taken.append(taken)
        if taken.fault.kind is Kind.KILL:
            self._killed |= {taken.pid, *taken.with_it}
        self._tally.add(taken.fault.words)

    def _ask(self, asking: Asking, began: float) -> None:
        _sleep_until(began + asking.at_s)
        self._ended.append(ask(self._box.ports[asking.listener], asking, began))

    def _may(self, ended: Ended) -> bool:
        return blame.is_allowed(ended, self._taken, self._earlier)

    def _settle(self) -> None:
        """Wait until the box is whole and quiet; then look at what it is made of."""
        spoils_jobs = any(_ends_scheduler(taken) for taken in self._taken)
        within_s = _SPOILED_JOB_S if spoils_jobs else _QUIET_WITHIN_S
        deadline = time.monotonic() + within_s
        while unrest := look.unrest(self._box, self._workers):
            assert time.monotonic() < deadline, f"not quiet after {within_s} s: {unrest}"
            time.sleep(0.1)
        self._see_who_decides()
        assert not self._claims.excess, f"more than fit: {self._claims.excess}"
        posted = [heard for heard in self._hands.overheard if heard.startswith(b"POST")]
        assert not posted, f"told to a stranger: {posted[0]!r}"
        found = census.members(self._box)
        lost = {m.name for m in self._known if m not in found and m.pid not in self._killed}
        assert not lost, f"ended though nobody killed it: {', '.join(sorted(lost))}"
        self._known = set(found)
        for member, process in found.items():
            self.ledger.enter(member, census.size_of(process))

    def _see_who_decides(self) -> None:
        """One life of a scheduler for each that was killed. One that finds the disk full may not count, or twice."""
        epoch = look.ask(self._box, "status")[0]["epoch"]
        kills = sum(_ends_scheduler(taken) for taken in self._taken)
        is_full = any(taken.fault.kind is Kind.FILL for taken in self._taken)
        assert kills or epoch == self._epoch, "a scheduler ended that nobody killed"
        assert is_full or epoch <= self._epoch + kills, "a scheduler ended that nobody killed"
        self._epoch = epoch

    def _keep_the_log(self) -> None:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"soak-{self._seed}-", suffix=".log", delete=False
        ) as kept:
            kept.write(self._box.log())
            self._kept = kept.name


def _ends_scheduler(taken: Taken) -> bool:
    return (taken.fault.kind, taken.fault.part) == (Kind.KILL, Part.SCHEDULER)


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.monotonic()))
