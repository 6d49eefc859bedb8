"""The feed: what changes, published for whoever looks on. Nobody looking costs nothing.

The scheduler is looked at ten times a second at most, and only while somebody wants to know and something happens:
each look is compared with the one before, and what differs is published. Decisions are told one by one. Both are
done in a thread of its own; the scheduler's makes the plain bodies and hands them over.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import pykka
from typing_extensions import override

from qmsup import places
from qmsup.actors.enduring import Enduring, QuestionLost
from qmsup.actors.inbox import PollingInbox
from qmsup.actors.names import NameAgain, name_again
from qmsup.ids import AskId, Epoch
from qmsup.log import Log
from qmsup.transport.feed import FeedSocket
from qmsup.units import Seconds

Bodies = Mapping[str, object]
"""By topic."""

_TRIED_AGAIN_AFTER = Seconds(1.0)

_log = Log("feed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The state as it stands, and what was decided since the last look.

    Attributes:
        kinds: the kinds of topics that `bodies` tells of, wholly.
        decisions: topic and body of each, in order, with the time of each.
        ask: a client that wants the state, and the number it goes up to.
    """

    kinds: frozenset[str]
    bodies: Bodies
    decisions: tuple[tuple[float, str, object], ...]
    ask: AskId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedWanted:
    """Somebody began to look on, or ceased to.

    Attributes:
        prefixes: of topics; none = nobody looks on.
        heard: to be called when that is known: whoever came is then told that the wish is in force.
    """

    prefixes: frozenset[str]
    heard: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Greet:
    """What was wanted is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """The answer to a client that wants the state.

    Attributes:
        seq: by kind, the number of the last message that `state` includes.
    """

    ask: AskId
    seq: Mapping[str, int]
    state: Bodies

    def body(self, epoch: Epoch, decisions: Sequence[object]) -> dict[str, object]:
        """What the client reads."""
        endpoint = places.feed_endpoint()
        told = {"endpoint": endpoint, "epoch": epoch, "seq": self.seq, "state": self.state}
        return {**told, "decisions": decisions}


class FeedActor(Enduring):
    """Tell it looks. It tells who wants to look on, and the answers to clients."""

    PART = "feed"

    def __init__(self, *, endpoint: str, epoch: Epoch, tell: Callable[[object], None]) -> None:
        """Made by the scheduler actor.

        Args:
            endpoint: where it publishes.
            epoch: of this life.
            tell: takes FeedWanted, Subscribed and QuestionLost.
        """
        super().__init__()
        self._inbox = cast("PollingInbox", self.actor_inbox)  # made below
        self._endpoint = endpoint
        self._epoch = epoch
        self._tell = tell
        self._seq: Counter[str] = Counter()
        self._known: dict[str, object] = {}
        self._socket: FeedSocket | None = None
        self._is_broken = False
        """The last look at subscriptions did not come to its end."""

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def begin(self) -> None:
        try:
            self._socket = FeedSocket(self._endpoint)
        except OSError as error:
            # A box without a feed serves all the same.
            _log.error("feed.not_bound", endpoint=self._endpoint, because=error.strerror)
            return
        self._inbox.watch(self._socket.fileno(), self._look, eager=True)
        for keeper in self._socket.doorkeepers:
            self._inbox.watch(keeper.fileno(), partial(self.attempt, "connections", keeper.look))

    @override
    def on_stop(self) -> None:
        if self._socket is not None:
            self._inbox.forget(self._socket.fileno())
            for keeper in self._socket.doorkeepers:
                self._inbox.forget(keeper.fileno())
            self._socket.close()
        self._inbox.close()

    @override
    def take(self, message: object) -> None:
        if isinstance(message, Look):
            self._publish(message)
        elif isinstance(message, _Greet) and self._socket is not None:
            self._socket.greet()
        elif isinstance(message, NameAgain) and self._socket is not None:
            name_again(places.feed_socket(), self._socket.name_again)

    @override
    def mend(self, message: object) -> None:
        self._known = {}  # whatever of it was told already: all of it is, with the next look
        if isinstance(message, Look) and message.ask is not None:
            self._say(QuestionLost(ask=message.ask))

    def _look(self) -> None:
        self.attempt("subscriptions", self._look_at_subscriptions)
        if self._is_broken:
            self._inbox.wake_at(Seconds(time.monotonic() + _TRIED_AGAIN_AFTER))

    def _look_at_subscriptions(self) -> None:
        socket = self._socket
        assert socket is not None, "it is watched"
        was_broken, self._is_broken = self._is_broken, True
        if socket.look() or was_broken:  # which tells of a change once
            wanted = socket.wanted
            if not wanted:
                self._known = {}
            self._say(FeedWanted(prefixes=wanted, heard=self._greet_soon))
        self._is_broken = False

    def _greet_soon(self) -> None:
        """In the scheduler's thread."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self.actor_ref.tell(_Greet())

    def _publish(self, look: Look) -> None:
        now = time.time()
        fresh = {topic: body for topic, body in look.bodies.items() if self._is_news(topic, body)}
        gone = [
            topic
            for topic in self._known
            if topic not in look.bodies and _kind_of(topic) in look.kinds
        ]
        for at, topic, body in look.decisions:
            self._send(at, topic, body)
        for topic, body in fresh.items():
            self._known[topic] = body
            self._send(now, topic, body)
        for topic in gone:
            del self._known[topic]
            self._send(now, topic, None)
        if look.ask is not None:
            self._say(Subscribed(ask=look.ask, seq=dict(self._seq), state=look.bodies))

    def _say(self, message: FeedWanted | Subscribed | QuestionLost) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._tell(message)

    def _is_news(self, topic: str, body: object) -> bool:
        return topic not in self._known or self._known[topic] != body

    def _send(self, at: float, topic: str, body: object) -> None:
        kind = _kind_of(topic)
        self._seq[kind] += 1
        if self._socket is not None:
            self._socket.publish(self._epoch, self._seq[kind], at, topic, body)


def _kind_of(topic: str) -> str:
    return topic.partition(".")[0]
