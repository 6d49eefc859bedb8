"""Keeps the state of a scheduler up to date by its feed. Whoever uses it brings the road on which it asks.

A message that got lost, or another scheduler in the place of the first, is seen by the numbers; the state is then asked
for again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

from qmsup import places
from qmsup.errors import PeerError, QmsupError, SchedulerUnavailableError
from qmsup.ids import Epoch
from qmsup.transport.feed import FeedReader
from qmsup.units import Seconds
from qmsup.wire import bodies, codec, feed
from qmsup.wire.feed import Item

_GREETS_WITHIN = Seconds(5.0)


class Mirror:
    """See the module. For one thread.

    Attributes:
        state: body by topic, of the kinds that were subscribed to.
        decisions: the last ones before the state was asked for, oldest first.
        asked: how often the state was asked for; more than once = something was missed.
    """

    def __init__(
        self,
        subscribe: Callable[[], object],
        topics: Sequence[str] = ("",),
        *,
        greets_within: Seconds = _GREETS_WITHIN,
    ) -> None:
        """Subscribe, and ask for the state.

        Args:
            subscribe: asks the scheduler `subscribe`, for the answer's body; may raise any QmsupError.
            topics: prefixes; "" = everything.
            greets_within: so long the feed is waited for.

        Raises:
            SchedulerUnavailableError: nobody is there.
            QmsupError: it answers, but not so that this version can read it.
        """
        self.state: dict[str, Any] = {}
        self.decisions: tuple[dict[str, Any], ...] = ()
        self.asked = 0
        self._subscribe = subscribe
        self._topics = tuple(topics)
        self._epoch = Epoch(0)
        self._seq: dict[str, int] = {}
        self._reader = FeedReader(places.feed_endpoint(), topics)
        try:
            if not self._reader.await_greeting(greets_within):
                raise SchedulerUnavailableError(
                    f"the feed at {places.feed_endpoint()} does not answer:"
                    " look for `feed.not_bound` in the scheduler's log"
                )
            self._ask()
        except QmsupError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the subscription."""
        self._reader.close()

    def updates(self, timeout: Seconds) -> list[Item]:
        """What changed, waiting for it at most this long; `state` has it in already.

        Raises:
            QmsupError: something was missed, and the scheduler does not answer. Call again.
        """
        fresh: list[Item] = []
        for item in self._reader.receive(timeout):
            if item.epoch < self._epoch:
                continue  # a scheduler that is no more
            if item.epoch > self._epoch or item.seq > self._expected(item):
                self._ask()  # what of this batch is older is known by its number then
            if item.seq == self._expected(item):
                self._take(item)
                fresh.append(item)
        return fresh

    def _expected(self, item: Item) -> int:
        return self._seq.get(feed.kind_of(item.topic), 0) + 1

    def _take(self, item: Item) -> None:
        kind = feed.kind_of(item.topic)
        self._seq[kind] = item.seq
        if kind in feed.TOLD_EACH:
            return
        if item.body is None:
            self.state.pop(item.topic, None)
        else:
            self.state[item.topic] = item.body

    def _ask(self) -> None:
        told = codec.read_body(self._subscribe(), bodies.Subscription)
        if told.epoch == 0:
            raise PeerError("the scheduler has no feed: it is of an older version")
        self.asked += 1
        self._epoch = told.epoch
        self._seq = dict(told.seq)
        self.decisions = told.decisions
        self.state = {
            topic: body
            for topic, body in told.state.items()
            if any(topic.startswith(prefix) for prefix in self._topics)
        }
