"""Keeps books of requests that are over: rows on disk, counts for `/metrics`, the last ones for who looks on.

All in a thread of its own. What the scheduler does is counted in the scheduler's thread, and handed over as a copy when
somebody asks for the metrics.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pykka
from typing_extensions import override

from qmsup.actors import finished, metrics
from qmsup.actors.enduring import Enduring, QuestionLost
from qmsup.actors.exposition import Gauges, exposition
from qmsup.actors.feed import FeedActor, Look
from qmsup.actors.finished import Finished, Row
from qmsup.actors.gateway import Gateway
from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tallies import Tallies
from qmsup.actors.turn_tallies import TurnTallies
from qmsup.core.scheduling.stories import Turn
from qmsup.errors import PeerError
from qmsup.ids import AskId, Epoch, ListenerName
from qmsup.log import Log
from qmsup.spec import Spec
from qmsup.units import Seconds

_RECENT = 500
_KIND = "activity."
_LEFT = "499"
"""What stands for the status of an answer that nobody waited for, as nginx has it."""

_log = Log("books")


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker of this listener told of requests that are over; `finished.read` reads them.

    Attributes:
        known: the models that have a name in the metrics: on a route a client may ask for anything.
    """

    listener: ListenerName
    requests: bytes
    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whether anybody looks on."""

    is_wanted: bool


@dataclass(frozen=True, slots=True)
class MetricsAsked:
    """Somebody wants the metrics: these are the scheduler's part of them."""

    ask: AskId
    gauges: Gauges
    turns: Tallies


@dataclass(frozen=True, slots=True)
class ActivityAsked:
    """Somebody wants the last rows, so many at most."""

    ask: AskId
    limit: int


@dataclass(frozen=True, slots=True)
class Booked:
    """The answer to either."""

    ask: AskId
    body: Mapping[str, object]

    def tell(self, gateway: Gateway) -> None:
        """Give it."""
        gateway.reply(self.ask, self.body)


class Bookkeeper(Enduring):
    """Tell it Reported, Wanted, MetricsAsked and ActivityAsked. It tells Booked, or QuestionLost."""

    PART = "books"

    def __init__(
        self,
        *,
        tell: Callable[[Booked | QuestionLost], None],
        publish: Callable[[Look], None],
        keep: Callable[[list[Row]], None],
        recall: Callable[[int], list[Row]],
    ) -> None:
        """Made by the scheduler actor.

        Args:
            tell: takes answers.
            publish: takes what those who look on are to see.
            keep: takes rows for the disk.
            recall: tells the last ones of former lives.
        """
        super().__init__()
        self._tell = tell
        self._publish = publish
        self._keep = keep
        self._recall = recall
        self._tallies = Tallies()
        self._recent: deque[Row] = deque(maxlen=_RECENT)
        self._is_wanted = False

    @override
    def begin(self) -> None:
        self._recent.extend(self._recall(_RECENT))

    @override
    def take(self, message: object) -> None:
        match message:
            case Reported(listener=listener, requests=requests, known=known):
                try:
                    self._take(listener, finished.read(requests), known)
                except PeerError as error:
                    _log.warning("activity.unreadable", listener=listener, because=str(error))
            case Wanted(is_wanted=is_wanted):
                self._is_wanted = is_wanted
            case MetricsAsked(ask=ask, gauges=gauges, turns=turns):
                text = exposition(gauges, (turns, self._tallies))
                self._answer(ask, {"text": text})
            case ActivityAsked(ask=ask, limit=limit):
                rows = list(self._recent)[-limit:] if limit > 0 else []
                told = [finished.told_of(row, to_all=False) for row in rows]
                self._answer(ask, {"activity": told})
            case _:
                raise TypeError(type(message).__name__)

    @override
    def mend(self, message: object) -> None:
        if isinstance(message, MetricsAsked | ActivityAsked):
            self._say(QuestionLost(ask=message.ask))

    def _take(
        self, listener: ListenerName, requests: tuple[Finished, ...], known: frozenset[str]
    ) -> None:
        rows = [finished.row_of(listener, request) for request in requests]
        self._recent.extend(rows)
        self._keep(rows)
        for request in requests:
            self._count(listener, request, request.model if request.model in known else "")
        if self._is_wanted and requests:
            told = tuple(
                (request.time, f"{_KIND}{request.model}", finished.told_of(row, to_all=True))
                for request, row in zip(requests, rows, strict=True)
            )
            self._publish(Look(kinds=frozenset(), bodies={}, decisions=told))

    def _count(self, listener: ListenerName, request: Finished, model: str) -> None:
        tallies = self._tallies
        code = str(request.status) if request.status else _LEFT
        tallies.count(metrics.REQUESTS, model, listener, code)
        if request.wait_ms is not None:
            tallies.observe(metrics.QUEUE_WAIT, request.wait_ms / 1000, model)
        if request.ttft_ms is not None and request.streaming:
            tallies.observe(metrics.TTFT, request.ttft_ms / 1000, model)
        if request.tokens_in is not None:
            tallies.count(metrics.TOKENS, model, "in", by=request.tokens_in)
        if request.tokens_out is not None:
            tallies.count(metrics.TOKENS, model, "out", by=request.tokens_out)

    def _answer(self, ask: AskId, body: Mapping[str, object]) -> None:
        self._say(Booked(ask, body))

    def _say(self, message: Booked | QuestionLost) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._tell(message)


class Books:
    """The bookkeeper and what the scheduler counts itself, as the scheduler sees them. For its thread alone."""

    def __init__(
        self,
        tell: Callable[[Booked | QuestionLost], None],
        feed: pykka.ActorRef[FeedActor],
        store: StateOnDisk,
        epoch: Epoch,
        spec: Callable[[], Spec],
    ) -> None:
        """Start the thread.

        Args:
            tell: takes answers to those who ask.
            feed: publishes.
            store: writes.
            epoch: of this life.
            spec: tells the configuration in force.
        """
        self._turns = TurnTallies()
        self._epoch = epoch
        self._spec_now = spec
        self._spec: Spec | None = None
        self._known: frozenset[str] = frozenset()
        self._keeper = Bookkeeper.start(
            tell=tell,
            publish=_unless_dead(feed),
            keep=store.keep_activity,
            recall=store.recent_activity,
        )
        self.note: Callable[[Turn, Seconds], None] = self._turns.note
        """Something happened, and this is what was decided, in so much time."""

    def take(self, listener: ListenerName, requests: bytes) -> None:
        """A listener's worker told of requests that are over."""
        if (spec := self._spec_now()) is not self._spec:
            self._spec, self._known = spec, frozenset(_models_of(spec))
        self._say(Reported(listener, requests, self._known))

    def want(self, prefixes: frozenset[str]) -> None:
        """Somebody began to look on, or ceased to."""
        is_wanted = any(p.startswith(_KIND) or _KIND.startswith(p) for p in prefixes)
        self._say(Wanted(is_wanted))

    def show_metrics(self, ask: AskId, gauges: Gauges) -> None:
        """Answer with everything that is counted and measured."""
        gauges = {**gauges, metrics.EPOCH.name: {(): self._epoch}}
        self._say(MetricsAsked(ask, gauges, self._turns.tallies.copy()))

    def show_activity(self, ask: AskId, args: Mapping[str, object]) -> None:
        """Answer with the last requests that are over, oldest first."""
        limit = args.get("limit", _RECENT)
        self._say(ActivityAsked(ask, limit if isinstance(limit, int) else _RECENT))

    def _say(self, message: Reported | Wanted | MetricsAsked | ActivityAsked) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._keeper.tell(message)


def _models_of(spec: Spec) -> Iterator[str]:
    """Every model that the configuration names, wherever it runs."""
    yield from spec.models
    for host in spec.hosts.values():
        yield from host.models
    for peer in spec.peers.values():
        yield from peer.models
    for route in spec.routes.values():
        yield route.default_model


def _unless_dead(feed: pykka.ActorRef[FeedActor]) -> Callable[[Look], None]:
    def publish(look: Look) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            feed.tell(look)

    return publish
