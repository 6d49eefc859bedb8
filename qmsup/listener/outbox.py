"""What a worker has to say to the scheduler, gathered: what is not urgent travels with others, in one multipart."""

from collections.abc import Iterable

from qmsup.units import Seconds

_MAX_DEFERRAL = Seconds(0.001)
"""From one message to the next: what is not urgent travels with others where there are many, and at once otherwise."""


class Outbox:
    """See the module. Times are of the monotonic clock."""

    __slots__ = ("_frames", "_is_urgent", "_sent_at")

    def __init__(self) -> None:
        """Nothing is to be said."""
        self._frames: list[bytes] = []
        self._is_urgent = False
        self._sent_at = 0.0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: bytes) -> None:
        """To be said at the end of this turn."""
        self._frames.append(frame)
        self._is_urgent = True

    def add_in_time(self, frames: Iterable[bytes]) -> None:
        """To be said soon."""
        self._frames += frames

    def hurry(self) -> None:
        """Somebody waits for what was only to be said soon."""
        self._is_urgent = True

    def kept_until(self, now: float) -> float | None:
        """Until when it may be kept back; None = it is to be sent now."""
        until = self._sent_at + _MAX_DEFERRAL
        return until if now < until and not self._is_urgent else None

    def take(self, now: float) -> list[bytes]:
        """All of it, to be sent now."""
        frames, self._frames = self._frames, []
        self._is_urgent = False
        self._sent_at = now
        return frames
