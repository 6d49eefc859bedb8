"""A request without a grant: asked for again until it is answered, and told of to each new scheduler.

Repeats queue up while there is no scheduler; doubling keeps them few. A waiter that was heard is asked for as often as
the slowest of them as well: it finds a grant that got lost.
"""

from dataclasses import dataclass

from qmsup.listener.asker import Asker
from qmsup.units import Seconds, ms_from_seconds
from qmsup.wire.listening import Ask, Waiting

FIRST_REPEAT = Seconds(1.0)
SLOWEST_REPEAT = Seconds(10.0)
_DOUBTED_FOR = Seconds(1.0)
"""So long after a freeze grants may still come that had been on their way."""
_MOST_DOUBTS = 3
_LOOKED_AT_WITHIN = Seconds(3.0)
"""It is looked at every second. Whoever does so later was frozen, or the machine was."""


@dataclass(slots=True)
class Unanswered:
    """See the module. Times are of the monotonic clock.

    Attributes:
        asked_at: when it was asked for by this question.
        said_at: when it was said last; 0 = once.
        is_answered: the scheduler has said something about it.
    """

    ask: Ask
    asker: Asker
    asked_at: float
    repeat_at: float
    said_at: float = 0.0
    pause: float = FIRST_REPEAT
    is_answered: bool = False
    looked_at: float = 0.0
    missed: float = 0.0
    """Seconds in which nothing could be heard."""
    doubts: int = 0

    def hear(self, now: float) -> None:
        """The scheduler said where it stands."""
        if not self.is_answered:
            self.is_answered = True
            self.pause = SLOWEST_REPEAT
            self.repeat_at = now + SLOWEST_REPEAT

    def is_given_up(self, now: float, grace: float) -> bool:
        """Whether nobody has said anything about it for so long. To be asked every second.

        While this process was frozen its connection may have been cut, and the answer lost: that is no silence.
        """
        gap = now - (self.looked_at or self.asked_at)
        self.missed += max(0.0, gap - _LOOKED_AT_WITHIN)
        self.looked_at = now
        return not self.is_answered and now - self.asked_at - self.missed >= grace

    def is_to_be_repeated(self, now: float) -> bool:
        """Whether it is to be asked for again, now."""
        if now < self.repeat_at:
            return False
        self.pause = min(self.pause * 2, SLOWEST_REPEAT)
        self.repeat_at = now + self.pause
        return True

    def said_again(self, now: float) -> Ask:
        """The question once more, for a scheduler that may never have heard it."""
        self.said_at = now
        return self.ask.after(self._waited_ms(now))

    def doubts_grant(self, thawed_at: float, now: float) -> bool:
        """Whether a grant that has come may have lapsed while this process was frozen: it was asked for before.

        Where that goes on and on it is believed, and the scheduler says if it is void.

        Args:
            thawed_at: when the process looked at its socket again, the last time.
            now: on the same clock.
        """
        is_old = now - thawed_at < _DOUBTED_FOR and (self.said_at or self.asked_at) < thawed_at
        self.doubts += is_old
        return is_old and self.doubts <= _MOST_DOUBTS

    def told(self, now: float) -> Waiting:
        """What a scheduler is told that does not know it."""
        ask = self.ask
        return Waiting(
            request=ask.request,
            model=ask.model,
            streaming=ask.streaming,
            hold_ms=ask.hold_ms,
            patience_ms=ask.patience_ms,
            timeout_ms=ask.timeout_ms,
            conversation=ask.conversation,
            waited_ms=self._waited_ms(now),
            client=ask.client,
            routed=ask.routed,
        )

    def _waited_ms(self, now: float) -> int:
        """Since it was asked for first."""
        return self.ask.waited_ms + ms_from_seconds(Seconds(now - self.asked_at))
