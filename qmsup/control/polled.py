"""Looks on from another machine, where the feed cannot be had: the state is asked for, again and again.

One address and one pair of keys do for all. The price: what changes is seen a second late, what lasted less is not
seen, and of many decisions at once the oldest are missed.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qmsup.ids import Epoch
from qmsup.units import Seconds
from qmsup.wire import bodies, codec
from qmsup.wire.feed import Item

_EVERY = Seconds(1.0)
_MOST_AT_ONCE = 500
"""Requests that are over, told in one answer; the scheduler keeps no more at hand."""
_NOT_FOR_THE_FEED = frozenset({"key", "fingerprint"})

Ask = Callable[..., Any]
"""Asks the scheduler a verb with its arguments, for the answer's body; may raise any QmsupError."""


class PolledMirror:
    """As a mirror that follows the feed (transport/mirror.py). For one thread.

    Attributes:
        state: body by topic, of the kinds that are wanted.
        decisions: the last ones before this was made, oldest first.
        missed: how often more was told at once than there is room for.
    """

    def __init__(self, ask: Ask, topics: Sequence[str] = ("",), *, every: Seconds = _EVERY) -> None:
        """Ask for the state.

        Args:
            ask: see `Ask`.
            topics: prefixes; "" = everything.
            every: between two looks.

        Raises:
            QmsupError: nobody answers, or not so that this version can read it.
        """
        self.state: dict[str, Any] = {}
        self.missed = 0
        self._ask = ask
        self._topics = tuple(topics)
        self._every = every
        self._epoch = Epoch(0)
        self._wants_activity = any(
            prefix.startswith("activity") or "activity.".startswith(prefix) for prefix in topics
        )
        self._decided: Sequence[dict[str, Any]] = ()
        self._over: Sequence[dict[str, Any]] = ()
        self._look()
        self.decisions: tuple[dict[str, Any], ...] = tuple(self._decided)

    def close(self) -> None:
        """Nothing is kept open here."""

    def updates(self, timeout: Seconds) -> list[Item]:
        """What changed, waiting for it at most this long; `state` has it in already.

        Raises:
            QmsupError: the scheduler does not answer. Call again.
        """
        left = self._due - time.monotonic()
        time.sleep(max(0.0, min(left, timeout)))
        return self._look() if time.monotonic() >= self._due else []

    def _look(self) -> list[Item]:
        self._due = time.monotonic() + self._every
        told = codec.read_body(self._ask("subscribe"), bodies.Subscription)
        over = (
            self._ask("activity", limit=_MOST_AT_ONCE)["activity"] if self._wants_activity else ()
        )
        is_first = self._epoch == 0
        if told.epoch != self._epoch:  # another life of the scheduler, which counts anew
            self._epoch, self._decided, self._over = told.epoch, (), ()
        items = [
            *self._decisions(told.decisions),
            *self._activity(over),
            *self._changes(told.state),
        ]
        return [] if is_first else items

    def _decisions(self, told: Sequence[dict[str, Any]]) -> Iterable[Item]:
        known, self._decided = self._decided, told
        for decision in self._after(known, told):
            body = {key: value for key, value in decision.items() if key != "time"}
            yield from self._item(f"decision.{decision['decision']}", body, decision["time"])

    def _activity(self, told: Sequence[dict[str, Any]]) -> Iterable[Item]:
        known, self._over = self._over, told
        for over in self._after(known, told):
            body = {key: value for key, value in over.items() if key not in _NOT_FOR_THE_FEED}
            yield from self._item(f"activity.{over['model']}", body, time.time())

    def _changes(self, told: dict[str, Any]) -> Iterable[Item]:
        before, self.state = self.state, {t: b for t, b in told.items() if self._is_wanted(t)}
        now = time.time()
        for topic, body in self.state.items():
            if topic not in before or before[topic] != body:
                yield from self._item(topic, body, now)
        for topic in before.keys() - self.state.keys():
            yield from self._item(topic, None, now)

    def _after(
        self, known: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]
    ) -> Sequence[dict[str, Any]]:
        """What was told after the last that is known."""
        if not known:
            return told
        for place in range(len(told) - 1, -1, -1):
            if told[place] == known[-1]:
                return told[place + 1 :]
        self.missed += 1
        return told

    def _item(self, topic: str, body: object, at: float) -> Iterable[Item]:
        if self._is_wanted(topic):
            yield Item(epoch=self._epoch, time=at, topic=topic, body=body)

    def _is_wanted(self, topic: str) -> bool:
        return topic.startswith(self._topics)
