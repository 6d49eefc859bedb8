"""What a worker has to tell about requests that are over. It travels with the beat, off the way of any request."""

from collections import deque
from collections.abc import Iterator

from qmsup.ids import ListenerName
from qmsup.wire import codec
from qmsup.wire.listening import Finished

_MOST = 20_000
"""Kept between two beats; more of them within a second is more than a worker can serve."""
_AT_ONCE = 128
"""In one message: whoever reads it holds up nothing for long."""


class Activity:
    """Requests of one worker that are over. `add` is for any thread, `take` for the one that sends."""

    def __init__(self, listener: ListenerName) -> None:
        self._listener = listener
        self._requests: deque[Finished] = deque(maxlen=_MOST)
        self.add = self._requests.append
        """Tell of a request."""

    def take(self) -> Iterator[bytes]:
        """What was added, as messages, each told once."""
        requests = self._requests
        while requests:
            told = [requests.popleft() for _ in range(min(len(requests), _AT_ONCE))]
            yield codec.encode_activity(self._listener, told)
