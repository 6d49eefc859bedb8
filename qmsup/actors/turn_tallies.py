"""What the scheduler's turns amount to: swaps, evictions, loads, ends of children. For the scheduler's thread alone.

A turn is read as it was recorded, so the core need not count.
"""

from qmsup.actors import metrics
from qmsup.actors.tallies import Tallies
from qmsup.core.scheduling.effects import EnsureReady, Record
from qmsup.core.scheduling.events import ProcessFailed, ProcessStopped
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import ModelId
from qmsup.units import Seconds

_STOPS = {"model.unused": "ttl", "model.shed": "memory", "model.unlawful": "config"}
"""Decisions that stop a model for no other's sake, and what that is counted as."""


class TurnTallies:
    """Tell it every turn."""

    def __init__(self) -> None:
        self.tallies = Tallies()
        """What was counted so far."""
        self._decided: dict[ModelId, Seconds] = {}
        self._started: dict[ModelId, Seconds] = {}

    def note(self, turn: Turn, took: Seconds) -> None:
        """Something happened, and this is what was decided.

        Args:
            turn: the event and its effects.
            took: the time it took to decide.
        """
        self.tallies.observe(metrics.HANDLE, took)
        for effect in turn.effects:
            if type(effect) is Record:
                self._note_decision(effect, turn.now)
            elif type(effect) is EnsureReady:
                self._started[effect.model] = turn.now
        event = turn.event
        if type(event) is ProcessStopped or type(event) is ProcessFailed:
            self._note_exit(event, turn)

    def _note_decision(self, record: Record, now: Seconds) -> None:
        model, tallies = record.model or ModelId(""), self.tallies
        match record.decision:
            case "swap.started":
                self._decided[model] = now
                tallies.count(metrics.SWAPS, model, record.because)
                for victim in record.evicts:
                    tallies.count(metrics.EVICTIONS, victim, record.because)
            case "swap.done":
                self._observe_load(model, now)
            case "swap.aborted":
                tallies.count(metrics.ABORTED_LOADS)
            case "unload.asked":
                for victim in record.evicts:
                    tallies.count(metrics.EVICTIONS, victim, "unload")
            case decision if (why := _STOPS.get(decision)) is not None:
                tallies.count(metrics.EVICTIONS, model, why)
            case _:
                pass

    def _observe_load(self, model: ModelId, now: Seconds) -> None:
        if (since := self._decided.pop(model, None)) is not None:
            self.tallies.observe(metrics.SWAP, now - since, model)
        if (since := self._started.pop(model, None)) is not None:
            self.tallies.observe(metrics.LOAD, now - since, model)

    def _note_exit(self, event: ProcessStopped | ProcessFailed, turn: Turn) -> None:
        reason = "stopped"
        for effect in turn.effects:
            if type(effect) is Record and effect.model == event.model:
                if effect.decision == "model.crashed":
                    reason = "crashed"
                elif effect.decision == "swap.failed":
                    reason = "failed_to_start"
        self.tallies.count(metrics.CHILD_EXITS, event.model, reason)
