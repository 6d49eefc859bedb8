"""How many requests each host serves of each model at once, and who waits for the next slot.

A llama-server with four slots over one shared context falls over at a fifth request, so the fifth waits here and
the ninth is refused at once (its client may go elsewhere). A pair is one model on one host. It has `parallel` slots
and one line, first come first served, of at most `queue_max`:

    acquire   a slot now, or a place in the line, or a refusal
    track     counts at once, never waits and is never refused: what is in flight may pass `parallel`
    release   gives a slot back, and so does a client that leaves with one in its hands

A slot that is given back goes to the head of the line only when no more than `parallel` were in flight before;
otherwise the pair was overfull and has merely one less. That one rule is why nobody ever waits beside a free slot and
nobody overtakes: while somebody waits, at least `parallel` are in flight.

Waiting is a value: whoever was told `Queued` hears of its slot as the `Heir` of somebody else's call.
"""

from dataclasses import dataclass, field

from typing_extensions import override

from qmsup.errors import Code, InvariantBrokenError, Refusal, key_text
from qmsup.ids import HostName, ModelId, RequestId
from qmsup.units import Seconds

_UNCONFIGURED = (1, 0)
"""`parallel` and `queue_max` where nobody said: one at a time suits every server, and nobody waits unasked."""
_NO_WAIT = Seconds(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The request has a slot.

    Attributes:
        waited: how long it stood in the line; 0 = not at all.
    """

    waited: Seconds = _NO_WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The request waits.

    Attributes:
        place: in the line of its pair; 1 = next.
    """

    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """As many wait as may; nothing is kept of the request."""

    refusal: Refusal


Answer = Granted | Queued | Full


@dataclass(frozen=True, slots=True, kw_only=True)
class Heir:
    """A request that waited, and has just been handed a slot.

    Attributes:
        waited: how long it stood in the line.
    """

    request: RequestId
    waited: Seconds


@dataclass(slots=True, kw_only=True)
class _Pair:
    """One model on one host.

    Attributes:
        is_configured: somebody set the numbers; only then do its slots count as the host's.
        holders: who is in flight, and how long each had waited.
        line: who waits, first to last, and since when.
    """

    host: HostName
    model: ModelId
    parallel: int
    queue_max: int
    is_configured: bool = False
    holders: dict[RequestId, Seconds] = field(default_factory=dict)
    line: dict[RequestId, Seconds] = field(default_factory=dict)

    @property
    def free(self) -> int:
        return max(0, self.parallel - len(self.holders))

    @property
    def is_idle(self) -> bool:
        return not (self.is_configured or self.holders or self.line)

    def promote(self, now: Seconds) -> Heir:
        """Hand a slot to the head of the line. Somebody waits."""
        request = next(iter(self.line))
        waited = Seconds(now - self.line.pop(request))
        self.holders[request] = waited
        return Heir(request=request, waited=waited)

    def fill(self, now: Seconds) -> tuple[Heir, ...]:
        """Hand every free slot out."""
        return tuple(self.promote(now) for _ in range(min(self.free, len(self.line))))

    def full(self) -> Full:
        key = f"hosts.{key_text(self.host)}.models.{key_text(self.model)}.queueMax"
        told = f"host {self.host} is full: of {self.model} it serves {len(self.holders)}, and {len(self.line)}"
        message = f"{told} wait, as many as {key} allows: try again later"
        return Full(refusal=Refusal(code=Code.QUEUE_FULL, message=message))

    @override
    def __repr__(self) -> str:
        told = f"{self.host}/{self.model} {len(self.holders)}/{self.parallel}"
        return f"{told} +{len(self.line)}" if self.line else told


class Limiter:
    """The slots of all hosts. A request holds one slot or place at a time.

    Model names are those that the host goes by.
    """

    __slots__ = ("_pair_of", "_pairs")

    def __init__(self) -> None:
        self._pairs: dict[HostName, dict[ModelId, _Pair]] = {}
        self._pair_of: dict[RequestId, _Pair] = {}

    def configure(
        self, host: HostName, model: ModelId, *, parallel: int, queue_max: int, now: Seconds
    ) -> tuple[Heir, ...]:
        """Set a pair's numbers. Those who wait or are in flight stay, even where fewer may from now on.

        Args:
            host: where.
            model: what.
            parallel: how many it serves at once; 0 = none for the time being.
            queue_max: how many may wait.
            now: the monotonic clock.

        Returns:
            Who got a slot that this made, first come first served.

        Raises:
            InvariantBrokenError: a number is negative, which the configuration never lets through.
        """
        if min(parallel, queue_max) < 0:
            raise InvariantBrokenError(
                f"{host}/{model}: parallel {parallel}, queue_max {queue_max}"
            )
        pair = self._pair(host, model)
        pair.parallel, pair.queue_max, pair.is_configured = parallel, queue_max, True
        return pair.fill(now)

    def unconfigure(self, host: HostName, model: ModelId, *, now: Seconds) -> tuple[Heir, ...]:
        """Take a pair's numbers back (it left the configuration). Returns who got a slot by that."""
        pair = self._pair(host, model)
        pair.parallel, pair.queue_max = _UNCONFIGURED
        pair.is_configured = False
        heirs = pair.fill(now)
        self._forget_if_idle(pair)
        return heirs

    def acquire(
        self, request: RequestId, host: HostName, model: ModelId, *, now: Seconds
    ) -> Answer:
        """Ask for a slot. Asking again changes nothing, and tells how things stand by now.

        Raises:
            InvariantBrokenError: the request still has a slot or place somewhere else.
        """
        pair = self._pair(host, model)
        if self._is_known(request, pair):
            return self._standing(request, pair)
        if pair.free:
            pair.holders[request] = _NO_WAIT
            self._pair_of[request] = pair
            return Granted()
        if len(pair.line) >= pair.queue_max:
            full = pair.full()
            self._forget_if_idle(pair)
            return full
        pair.line[request] = now
        self._pair_of[request] = pair
        return Queued(place=len(pair.line))

    def track(self, request: RequestId, host: HostName, model: ModelId) -> None:
        """Count a request that its own client queues. Others see the host full, this one never waits.

        Raises:
            InvariantBrokenError: the request still has a slot or place somewhere else.
        """
        pair = self._pair(host, model)
        self._is_known(request, pair)
        pair.line.pop(request, None)
        pair.holders.setdefault(request, _NO_WAIT)
        self._pair_of[request] = pair

    def release(self, request: RequestId, *, now: Seconds) -> Heir | None:
        """Give back what `acquire` or `track` counted. A second call, or one for a waiter, does nothing.

        Returns:
            Who has the slot now, if somebody has.
        """
        pair = self._pair_of.get(request)
        if pair is None or request in pair.line:
            return None
        is_overfull = len(pair.holders) > pair.parallel
        del pair.holders[request], self._pair_of[request]
        heir = pair.promote(now) if pair.line and not is_overfull else None
        self._forget_if_idle(pair)
        return heir

    def leave(self, request: RequestId, *, now: Seconds) -> Heir | None:
        """The client has gone. Its place is given back, or the slot if it was handed one in the same instant.

        Returns:
            Who has that slot now, if somebody has.
        """
        pair = self._pair_of.get(request)
        if pair is None or request not in pair.line:
            return self.release(request, now=now)
        del pair.line[request], self._pair_of[request]
        self._forget_if_idle(pair)
        return None

    def in_flight(self, host: HostName, model: ModelId) -> int:
        """How many are being served, tracked ones included."""
        pair = self._seen(host, model)
        return len(pair.holders) if pair else 0

    def queued(self, host: HostName, model: ModelId) -> int:
        """How many wait."""
        return len(self.waiting(host, model))

    def waiting(self, host: HostName, model: ModelId) -> tuple[RequestId, ...]:
        """Who waits, first to last."""
        pair = self._seen(host, model)
        return tuple(pair.line) if pair else ()

    def free_slots(self, host: HostName) -> int:
        """How many more requests a host could serve now: the sum over its configured models; 0 = unknown host."""
        pairs = self._pairs.get(host, {}).values()
        return sum(pair.free for pair in pairs if pair.is_configured)

    @override
    def __repr__(self) -> str:
        pairs = (repr(pair) for models in self._pairs.values() for pair in models.values())
        return f"<Limiter {', '.join(pairs) or 'idle'}>"

    def _seen(self, host: HostName, model: ModelId) -> _Pair | None:
        return self._pairs.get(host, {}).get(model)

    def _pair(self, host: HostName, model: ModelId) -> _Pair:
        pair = self._seen(host, model)
        if pair is None:
            parallel, queue_max = _UNCONFIGURED
            pair = _Pair(host=host, model=model, parallel=parallel, queue_max=queue_max)
            self._pairs.setdefault(host, {})[model] = pair
        return pair

    def _is_known(self, request: RequestId, pair: _Pair) -> bool:
        current = self._pair_of.get(request, pair)
        if current is not pair:
            where = f"{current.host}/{current.model}"
            raise InvariantBrokenError(
                f"request {request} is at {where}: it must leave there first"
            )
        return request in self._pair_of

    def _standing(self, request: RequestId, pair: _Pair) -> Granted | Queued:
        if request in pair.holders:
            return Granted(waited=pair.holders[request])
        return Queued(place=list(pair.line).index(request) + 1)

    def _forget_if_idle(self, pair: _Pair) -> None:
        # Clients may name any model: what nobody configured and nobody uses must not pile up.
        if not pair.is_idle:
            return
        models = self._pairs[pair.host]
        del models[pair.model]
        if not models:
            del self._pairs[pair.host]
