"""A worker's look at what happens: one thread for all its clients, as long as it has any.

It follows the scheduler's feed and the logs of models' programs, and leaves what it saw to the loop, which it nudges.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from qmsup import places
from qmsup.child_logs import Follower
from qmsup.errors import QmsupError
from qmsup.ids import ModelId
from qmsup.listener.event_stream import Told
from qmsup.log import Log
from qmsup.transport.mirror import Mirror
from qmsup.units import Seconds
from qmsup.wire import feed

_TOPICS = ("model.", "decision.", "activity.")
_LOOK = Seconds(0.25)
_TRY_AGAIN = Seconds(1.0)
_MOST_NEWS = 2000
"""Left to the loop; what is older is lost when it does not come to read it."""
_JOIN = Seconds(2.0)

_log = Log("watch")


@dataclass(frozen=True, slots=True)
class Standing:
    """How models stand, by name."""

    states: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Busy:
    """How many requests each model has, by name."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Over:
    """Requests that are over."""

    rows: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision fell."""

    at: float
    body: Told


@dataclass(frozen=True, slots=True)
class Wrote:
    """A model's program wrote lines."""

    model: ModelId
    lines: tuple[bytes, ...]


News = Standing | Busy | Over | Decided | Wrote


class FeedWatch:
    """See the module. Everything is for the loop's thread."""

    def __init__(self, subscribe: Callable[[], object], nudge: Callable[[], None]) -> None:
        """Start to look.

        Args:
            subscribe: asks the scheduler `subscribe`, for the answer's body; called in the thread.
            nudge: called in the thread when there is news.
        """
        self.models: Collection[ModelId] = ()
        """Whose logs are followed."""
        self._news: deque[News] = deque(maxlen=_MOST_NEWS)
        self._subscribe = subscribe
        self._nudge = nudge
        self._ending = threading.Event()
        self._states: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._followers: dict[ModelId, Follower] = {}
        self._thread = threading.Thread(target=self._run, name="feed-watch", daemon=True)
        self._thread.start()

    def take(self) -> list[News]:
        """What was seen since the last call."""
        news = self._news
        return [news.popleft() for _ in range(len(news))]

    def end(self) -> None:
        """Have the thread end soon. Does not wait."""
        self._ending.set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread goes on."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for its end, as long as that is no matter of a scheduler that is gone."""
        self._thread.join(_JOIN)

    # ---- in the thread

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    with Mirror(self._subscribe, _TOPICS, greets_within=_TRY_AGAIN) as mirror:
                        self._follow(mirror)
                except (QmsupError, OSError) as error:
                    _log.debug("watch.again", because=str(error))
                    self._ending.wait(_TRY_AGAIN)
        except Exception:  # noqa: BLE001 - our bug; clients hear nothing more until they come again
            _log.exception("watch.broken")
        finally:
            for follower in self._followers.values():
                follower.close()

    def _follow(self, mirror: Mirror) -> None:
        self._tell_standing(mirror)
        while not self._ending.is_set():
            for item in mirror.updates(_LOOK):
                kind = feed.kind_of(item.topic)
                if kind == "decision":
                    self._news.append(Decided(item.time, item.body))
                elif kind == "activity":
                    self._news.append(Over((item.body,)))
            self._tell_standing(mirror)
            self._tell_logs()
            if self._news:
                self._nudge()

    def _tell_standing(self, mirror: Mirror) -> None:
        bodies = [body for topic, body in mirror.state.items() if topic.startswith("model.")]
        states = {str(body["name"]): str(body["state"]) for body in bodies}
        counts = {str(body["name"]): int(body["inflight"] or 0) for body in bodies}
        if states != self._states:
            self._states = states
            self._news.append(Standing(states))
        if counts != self._counts:
            self._counts = counts
            self._news.append(Busy(counts))

    def _tell_logs(self) -> None:
        for model in self.models:
            follower = self._followers.get(model)
            if follower is None:
                follower = self._followers[model] = Follower(places.log_file(model))
            if lines := follower.new_lines():
                self._news.append(Wrote(model, tuple(lines)))
