"""Models that a policy does not tell apart: it is asked once for all of them."""

from collections.abc import Hashable

from qmsup.core.eviction.policy import EvictionPolicy
from qmsup.ids import ModelId


class Alike:
    """Answers of a policy, kept for as long as the same models run."""

    __slots__ = ("_answers", "_likenesses", "_policy", "_running")

    def __init__(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self._likenesses: dict[ModelId, Hashable] = {}
        self._running: tuple[ModelId, ...] = ()
        self._answers: dict[Hashable, tuple[ModelId, ...]] = {}

    def eviction_for(self, target: ModelId, running: tuple[ModelId, ...]) -> tuple[ModelId, ...]:
        """What the policy answers.

        Args:
            target: does not run.
            running: coldest first.
        """
        if running is not self._running and running != self._running:
            self._answers = {}
        self._running = running
        likeness = self.likeness_of(target)
        evict = self._answers.get(likeness)
        if evict is None:
            evict = self._answers[likeness] = self._policy.eviction_for(target, running)
        return evict

    def likeness_of(self, target: ModelId) -> Hashable:
        """All by which the policy tells it from others."""
        likeness = self._likenesses.get(target)
        if likeness is None:
            likeness = self._likenesses[target] = self._policy.likeness(target)
        return likeness
