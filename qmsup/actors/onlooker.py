"""What those who look on are shown, made in the scheduler's thread: bodies by topic (wire: PROTOCOL.md, the feed)."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping

from qmsup.actors.feed import Look
from qmsup.core.scheduling import memory, views
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.state import State
from qmsup.core.vram.reading import Reading
from qmsup.ids import AskId
from qmsup.spec import Spec
from qmsup.units import Seconds

KINDS = frozenset({"model", "line", "lease", "vram"})
_PERIOD = Seconds(0.1)
_RECENT = 200
_MOST_PENDING = 2000
"""Decisions between two looks; more of them at once are told of by the log alone."""


class Onlooker:
    """Notes decisions as they fall, and says when the state is to be looked at."""

    def __init__(self, offset: float) -> None:
        """Nobody looks on yet.

        Args:
            offset: what makes Unix seconds of the monotonic clock, fixed, so that a time once told stays the same.
        """
        self._offset = offset
        self._kinds: frozenset[str] = frozenset()
        self._wants_decisions = False
        self._pending: deque[tuple[float, str, object]] = deque(maxlen=_MOST_PENDING)
        self._recent: deque[dict[str, object]] = deque(maxlen=_RECENT)
        self._due: Seconds | None = None
        self.reading = Reading()
        """What was read of the memory last."""

    @property
    def due(self) -> Seconds | None:
        """When the state is to be looked at; None = there is nothing to see, or nobody who would."""
        return self._due

    @property
    def recent(self) -> tuple[dict[str, object], ...]:
        """The last decisions, oldest first, each with its `time`."""
        return tuple(self._recent)

    def want(self, prefixes: frozenset[str], now: Seconds) -> None:
        """Somebody began to look on, or ceased to."""
        self._kinds = frozenset(kind for kind in KINDS if _is_wanted(f"{kind}.", prefixes))
        self._wants_decisions = _is_wanted("decision.", prefixes)
        self._due = Seconds(now + _PERIOD) if prefixes else None
        if not prefixes:
            self._pending.clear()

    def note(self, record: Record, now: Seconds) -> None:
        """A decision fell."""
        body = _decision(record)
        at = self._offset + now
        self._recent.append({"time": round(at, 3), **body})
        if self._wants_decisions:
            self.stir(now)
            self._pending.append((at, f"decision.{record.decision}", body))

    def stir(self, now: Seconds) -> None:
        """Something happened."""
        if self._due is None and (self._kinds or self._wants_decisions):
            self._due = Seconds(now + _PERIOD)

    def look(self, state: State, spec: Spec, now: Seconds, ask: AskId | None = None) -> Look:
        """The state now. With an ask, all of it."""
        self._due = None
        kinds = self._kinds if ask is None else KINDS
        decisions = tuple(self._pending)
        self._pending.clear()
        bodies = dict(self._bodies(kinds, state, spec, now))
        return Look(kinds=kinds, bodies=bodies, decisions=decisions, ask=ask)

    def _bodies(
        self, kinds: frozenset[str], state: State, spec: Spec, now: Seconds
    ) -> Iterator[tuple[str, object]]:
        if "model" in kinds:
            for view in views.models(state, spec, now):
                yield f"model.{view.id}", self._model(view, now)
        if "line" in kinds:
            for model, body in _line(state, now).items():
                yield f"line.{model}", body
        if "lease" in kinds:
            for lease in views.leases(state, now):
                yield f"lease.{lease.id}", _lease(lease)
        if "vram" in kinds:
            yield "vram.all", _vram(state, spec, self.reading)

    def _model(self, view: views.ModelView, now: Seconds) -> dict[str, object]:
        return {
            "name": view.id,
            "state": view.state,
            "closing": view.closing or None,
            "pid": view.pid,
            "port": view.port,
            "vram_mib": view.est_vram or None,
            "inflight": view.in_flight,
            "queued": view.queued,
            "since": self._at(Seconds(now - view.since)),
            "held_until": self._end(view.hold_left, now),
            "unloads_at": self._end(view.ttl_left, now),
            "pinned": view.is_pinned,
            "error": view.last_error or None,
        }

    def _end(self, left: Seconds | None, now: Seconds) -> float | None:
        return None if left is None else self._at(Seconds(now + left))

    def _at(self, when: Seconds) -> float:
        # To the tenth: what is computed from a time left may differ in its last digit, and that is no news.
        return round(self._offset + when, 1)


def _is_wanted(kind: str, prefixes: frozenset[str]) -> bool:
    return any(kind.startswith(prefix) or prefix.startswith(kind) for prefix in prefixes)


def _decision(record: Record) -> dict[str, object]:
    return {
        "decision": record.decision,
        "model": record.model,
        "request": record.request,
        "lease": record.lease,
        "evicts": list(record.evicts),
        "because": record.because or None,
        "turn": record.cause,
    }


def _line(state: State, now: Seconds) -> Mapping[str, dict[str, object]]:
    """By model: how many wait, and how the first of them stands."""
    line = views.line(state, now)
    waiting = Counter(place.model for place in line)
    told: dict[str, dict[str, object]] = {}
    for place in line:
        if place.model not in told:
            told[place.model] = {
                "waiting": waiting[place.model],
                "position": place.place,
                "because": place.because,
                "behind": list(place.behind),
            }
    return told


def _lease(lease: views.LeaseView) -> dict[str, object]:
    return {
        "lease": lease.id,
        "model": lease.model,
        "kind": "job" if lease.is_job else "request",
        "owner": lease.owner,
        "purpose": lease.purpose,
    }


def _vram(state: State, spec: Spec, seen: Reading) -> dict[str, object]:
    return {
        "total_mib": seen.total,
        "used_mib": seen.used,
        "foreign_mib": seen.foreign,
        "held_mib": sum(seen.held.values()) if seen.is_trusted else None,
        "because": seen.because or None,
        "budget_mib": spec.vram_budget or None,
        "ceiling_mib": state.memory.ceiling,
        "free_mib": state.memory.free,
        "ours_mib": sum(memory.size_of(state, m.running_spec) for m in state.residents) or None,
    }
