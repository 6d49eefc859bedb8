"""A box on a card that games play on, too: whatever they take, no load of ours dies of memory that could be known of.

The card takes no more than it has. After each round all that is read must be right again, and each model answers.
"""

import json
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests

from scripts.soaking import look
from scripts.soaking.found import FoundError
from scripts.soaking.gpu_blame import Around, Span
from scripts.soaking.gpu_plan import Gap, Missing, Plan, Wish, plan
from scripts.soaking.tally import Tally
from tests.fakes import gpu
from tests.fakes.gpu import FakeCard, FakeGpu, State
from tests.support.box import Box, fake, serving
from tests.support.gpu import environment, holder

TOTAL, BASE, RESERVE = 24576, 1500, 1024
_BUDGETS = 22 * 1024, 18 * 1024
"""MiB, all of them. Of the larger budget all that others leave is used; within the smaller one a game may find memory
that the models are to give back."""
_SLACK = 512
_LOADS_S = {"a": 0.4, "b": 0.3, "c": 0.6, "d": 0.2, "e": 0.3}
_TAKES = {
    "a": (6000, [3000]),
    "b": (8000, []),
    "c": (12000, []),
    "d": (2800, [100, 50]),
    "e": (5000, []),
}
"""While it loads, and as it serves. Of `e` the operator does not say how much."""
_QUIET_WITHIN_S = 30.0
_RIGHT_WITHIN_S = 12.0
_ANSWER_WITHIN_S = 40.0
_FREED_WITHIN_S = 6.0
_GRACE_S, _SHED_WITHIN_S = 2.0, 10.0
_REST_S = 65.0
"""For a minute after models were unloaded for a game none is."""
_TRIED_AGAIN_WITHIN_S = 70.0
"""A model whose loads died again and again, as they had to, is not tried for up to a minute."""
_JITTER = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fared:
    """How a client fared; times by the clock of the wall."""

    wish: Wish
    began: float
    ended: float
    status: int
    code: str


def soak(seed: int, is_over: Callable[[], bool], tally: Tally) -> None:
    """Round after round, one at the least.

    Raises:
        FoundError: at the first thing that must not be. The whole log of the box is kept then.
    """
    run: _Run | None = None
    with tempfile.TemporaryDirectory(prefix="qmsup-card-") as folder:
        card = FakeGpu(Path(folder))
        card.show(State(cards=(FakeCard(total=TOTAL, base=BASE),)))
        try:
            budget = _BUDGETS[seed % len(_BUDGETS)]
            with _box(card, budget) as box:
                run = _Run(box, card, budget, seed, tally)
                run.until(is_over)
        except AssertionError as error:
            raise FoundError(
                f"{str(error).splitlines()[0]} (seed {seed}, round {run.number if run else 0})",
                story=run.story if run else str(error),
                again=f"scripts/soak --gpu --seed {seed} --minutes {tally.seconds() / 60 + 1:.0f}"
                " (the same things at the same times; what else the machine does is not the same)",
            ) from error


@contextmanager
def _box(card: FakeGpu, budget: int) -> Iterator[Box]:
    models = {}
    for name, (loads, grows) in _TAKES.items():
        flags = (
            f"--name {name} --vram {loads} --load-seconds {_LOADS_S[name]} --event-interval 0.02"
        )
        if grows:
            flags += f" --grow-vram {' '.join(map(str, grows))}"
        models[name] = fake(flags, estVramGB=0 if name == "e" else (loads + sum(grows)) / 1024)
    keys: dict[str, Any] = {
        "vramBudgetGB": budget / 1024,
        "oomGuardGraceMs": _GRACE_S * 1000,
        "scheduler": {"holdMs": 0},
    }
    with serving(models, environment=environment(card), **keys) as box:
        yield box


class _Run:
    """One box, one card, and what happened to both."""

    def __init__(self, box: Box, card: FakeGpu, budget: int, seed: int, tally: Tally) -> None:
        self.number = 0
        self.story = ""
        self._box = box
        self._card = card
        self._budget = budget
        self._seed = seed
        self._tally = tally
        self._around = Around(games=[], gaps=[])
        self._fared: list[Fared] = []
        self._denials = 0
        self._games: list[subprocess.Popen[bytes]] = []

    def until(self, is_over: Callable[[], bool]) -> None:
        """Play rounds until it is time."""
        try:
            self._settle()
            while True:
                self._round()
                if is_over():
                    break
        except AssertionError:
            self._tell()
            raise
        finally:
            self._end_games()

    def _round(self) -> None:
        self.number += 1
        planned = plan(random.Random(f"{self._seed}/{self.number}"), tuple(_TAKES))
        self._fared = []
        self._card.change(lag_ms=planned.lag_ms)
        self._around.lags = planned.lag_ms > 0
        began = time.monotonic()
        threads = [
            threading.Thread(target=self._ask, args=(wish, began)) for wish in planned.wishes
        ]
        for thread in threads:
            thread.start()
        try:
            for at_s, act in sorted(self._acts(planned), key=lambda act: act[0]):
                time.sleep(max(0.0, began + at_s - time.monotonic()))
                act()
                self._never_more_than_there_is()
        finally:
            for thread in threads:
                thread.join()
        self._judge()
        self._settle()
        if self._games:
            _within(_SHED_WITHIN_S, self._excess)
        if not (planned.game and planned.game.plays_on and self._games):
            self._end_games()
            self._each_answers()
        self._tally.add("rounds")
        self._tally.counts["unloaded for a game"] = len(self._box.decisions("model.shed"))

    def _acts(self, planned: Plan) -> Iterator[tuple[float, Callable[[], None]]]:
        if (game := planned.game) is not None:
            yield game.at_s, lambda: self._play(game.mib)
            if not game.plays_on:
                yield game.until_s, self._end_games
        if (gap := planned.gap) is not None:
            yield gap.at_s, lambda: self._hide(gap)
            yield gap.until_s, self._show

    def _play(self, mib: int) -> None:
        """Start a game; with less room than it wants it takes what there is, and a load may be quicker still."""
        room = TOTAL - BASE - sum(self._card.held().values())
        span = Span(since=time.time())
        self._around.games.append(span)
        command = holder(self._card, max(1, min(mib, room)))
        game = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert game.stdout is not None
        if game.stdout.readline():
            self._games.append(game)
            self._tally.add("games")
        else:
            game.wait()
            span.until = time.time()

    def _end_games(self) -> None:
        for game in self._games:
            game.kill()
            game.communicate()
        self._games.clear()
        for span in self._around.games:
            span.until = span.until or time.time()

    def _hide(self, gap: Gap) -> None:
        self._around.gaps.append(Span(since=time.time()))
        card = self._card.state.cards[0]
        match gap.how:
            case Missing.DRIVER:
                self._card.change(init=gpu.DRIVER_NOT_LOADED)
            case Missing.CARD:
                self._card.change(cards=(replace(card, error=gpu.GPU_IS_LOST),))
            case Missing.LISTS:
                self._card.change(lists=gpu.NOT_SUPPORTED)
            case Missing.SLOW:
                self._card.change(hang_ms=700)
            case Missing.HIDDEN:
                self._card.change(hidden=tuple(self._card.held())[:1])
        self._tally.add(gap.how)

    def _show(self) -> None:
        card = self._card.state.cards[0]
        self._card.change(init=0, lists=0, hang_ms=0, hidden=(), cards=(replace(card, error=0),))
        for span in self._around.gaps:
            span.until = span.until or time.time()

    def _ask(self, wish: Wish, began: float) -> None:
        time.sleep(max(0.0, began + wish.at_s - time.monotonic()))
        self._fared.append(self._asked(wish))

    def _asked(self, wish: Wish) -> Fared:
        began = time.time()
        body = {"model": wish.model, "messages": [], "max_tokens": wish.words}
        try:
            answer = requests.post(
                self._box.url("/v1/chat/completions"), json=body, timeout=_ANSWER_WITHIN_S
            )
            status, said = answer.status_code, answer.json()
        except (requests.RequestException, ValueError) as error:
            status, said = 0, {"error": {"code": f"{type(error).__name__}"}}
        code = "" if status == 200 else str(said.get("error", {}).get("code"))
        self._tally.add(code or f"answered {status}")
        return Fared(wish=wish, began=began, ended=time.time(), status=status, code=code)

    def _judge(self) -> None:
        """Look at who was denied what, and by whose fault."""
        of_all_rounds = self._card.denied()
        denied = of_all_rounds[self._denials :]
        self._denials += len(denied)
        starts = {line["pid"]: line["time"] for line in self._box.decisions("child.starting")}
        for each in denied:
            started = starts.get(each.pid)
            if started is None:
                continue  # the game
            self._tally.add("died of memory, as it had to")
            assert self._around.excuses_denial(started, each.at), (
                f"a child died of memory: it asked for {each.mib} MiB and found {each.left}"
            )
        for fared in self._fared:
            if fared.status == 200 or (denied and fared.status in {0, 502, 503}):
                continue
            if fared.code == "model_unavailable" and of_all_rounds:
                since = fared.began - of_all_rounds[-1].at
                assert since < _TRIED_AGAIN_WITHIN_S, f"a client is still refused: {fared}"
                continue
            assert fared.code == "insufficient_vram", f"a client ended as none may: {fared}"
            excused = self._around.excuses_refusal(fared.began, fared.ended)
            assert excused, f"refused for memory that there was: {fared}"

    def _never_more_than_there_is(self) -> None:
        held = self._card.held()
        assert sum(held.values()) + BASE <= TOTAL, f"more is claimed than there is: {held}"

    def _settle(self) -> None:
        """Wait until all is quiet; then what is read must be what there is."""
        self._show()
        _within(_QUIET_WITHIN_S, lambda: look.unrest(self._box, 1))
        self._never_more_than_there_is()
        _within(_RIGHT_WITHIN_S, self._errors)

    def _errors(self) -> list[str]:
        """Where the box is wrong about the card."""
        held = self._card.held()
        ps = look.ask(self._box, "ps")[0]
        memory, models = ps["memory"], ps["models"]
        ours = {model["pid"]: model for model in models if model["pid"] is not None}
        games = sum(mib for pid, mib in held.items() if pid not in ours)
        room = max(0, self._budget - games - RESERVE) if games > 256 else self._budget
        expected = {"foreign_mib": BASE + games, "floor_mib": BASE, "ceiling_mib": room}
        errors = [
            f"{name} is {memory[name]}, not {mib}"
            for name, mib in expected.items()
            if memory[name] is None or abs(memory[name] - mib) > _JITTER
        ]
        for pid, model in ours.items():
            if abs((model["vram_held_mib"] or 0) - held.get(pid, 0)) > _JITTER:
                errors.append(
                    f"{model['name']} holds {held.get(pid)}, {model['vram_held_mib']} is told"
                )
        playing = {game.pid for game in self._games}
        errors += [
            f"pid {pid} is nobody's, and holds" for pid in held.keys() - ours.keys() - playing
        ]
        return errors

    def _excess(self) -> list[str]:
        """What the models, of which none is in use, hold of what a game has taken for long."""
        held = self._card.held()
        games = sum(held[game.pid] for game in self._games)
        excess = sum(held.values()) - games - max(0, self._budget - games) - _SLACK
        sheds = [line["time"] for line in self._box.decisions("model.shed")]
        if excess <= _JITTER or (sheds and time.time() - sheds[-1] < _REST_S):
            return []
        return [f"the models hold {excess} MiB too much"]

    def _each_answers(self) -> None:
        """Without a game there is room for each."""
        _within(_RIGHT_WITHIN_S, self._errors)
        for name in random.Random(self.number).sample([*_TAKES], len(_TAKES)):
            wish, began = Wish(at_s=0.0, model=name, words=1), time.monotonic()
            while (fared := self._asked(wish)).status != 200:
                lacks = fared.code == "insufficient_vram"
                within_s = _FREED_WITHIN_S if lacks else _TRIED_AGAIN_WITHIN_S
                waited = time.monotonic() - began
                assert waited < within_s, f"the card is free, and yet: {fared}"
                time.sleep(0.3)
        self._judge_quiet()

    def _judge_quiet(self) -> None:
        denied = self._card.denied()[self._denials :]
        assert not denied, f"a child died of memory, and nobody plays: {denied[0]}"

    def _tell(self) -> None:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"soak-{self._seed}-", suffix=".log", delete=False
        ) as kept:
            kept.write(self._box.log())
        planned = plan(random.Random(f"{self._seed}/{self.number}"), tuple(_TAKES))
        now = time.time()
        lines = [
            f"Planned: {planned.game}, {planned.gap}, the driver lags by {planned.lag_ms} ms",
            *(f"    {wish}" for wish in sorted(planned.wishes, key=lambda wish: wish.at_s)),
            f"Games (s ago): {[_ago(span, now) for span in self._around.games[-3:]]}",
            f"Gaps (s ago): {[_ago(span, now) for span in self._around.gaps[-3:]]}",
            f"Denied: {[_denial(each, now) for each in self._card.denied()[-3:]]}",
            f"On the card: {self._card.held()}",
            f"The box: {self._last_word()}",
            f"The whole log: {kept.name}",
        ]
        self.story = "\n".join(lines)

    def _last_word(self) -> str:
        try:
            return json.dumps(look.ask(self._box, "ps")[0]["memory"])
        except Exception as error:  # noqa: BLE001 - the story is told in any case
            return repr(error)


def _within(seconds: float, wrong: Callable[[], list[str]]) -> None:
    """Wait until nothing is wrong any more."""
    deadline = time.monotonic() + seconds
    while errors := wrong():
        assert time.monotonic() < deadline, f"still so after {seconds:g} s: {'; '.join(errors)}"
        time.sleep(0.1)


def _ago(span: Span, now: float) -> str:
    until = "now" if span.until is None else f"{now - span.until:.2f}"
    return f"{now - span.since:.2f}..{until}"


def _denial(denied: gpu.Denied, now: float) -> str:
    return f"{now - denied.at:.2f} pid {denied.pid}: {denied.mib} MiB, {denied.left} were left"
