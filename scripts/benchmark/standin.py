"""A listener's worker without a listener: asks the scheduler for models over its own socket."""

import os
import secrets
import time
from collections.abc import Callable

from qmsup.ids import ListenerName, ModelId, RequestId, WorkerId
from qmsup.transport.dealer import DealerSocket
from qmsup.units import Seconds
from qmsup.wire import codec, listening
from scripts.benchmark.programs import BenchError

_BEAT_S = 0.5


class StandIn:
    """One worker, for one thread."""

    def __init__(self, endpoint: str) -> None:
        """Connects and greets."""
        self._name = f"bench-{os.getpid()}-{secrets.token_hex(4)}"
        self._socket = DealerSocket(endpoint, self._name.encode())
        self._asked = 0
        self.send(
            listening.Hello(
                version=listening.VERSION,
                worker=WorkerId(self._name),
                listener=ListenerName("bench"),
                pid=os.getpid(),
            )
        )
        self.wait(lambda message: isinstance(message, listening.Welcome), "a welcome")

    def send(self, *messages: listening.FromWorker) -> None:
        """Sends messages, together."""
        self.send_frames([codec.encode(message) for message in messages])

    def send_frames(self, frames: list[bytes]) -> None:
        """Sends encoded messages, together."""
        self._socket.send(frames)

    def request(self) -> RequestId:
        """An id that was not used before; all of one stand-in are of one length."""
        self._asked += 1
        return RequestId(f"{self._name}-{self._asked:08}")

    def ask(self, model: str) -> RequestId:
        """Asks for a model, as a request that can be told its place in the line."""
        request = self.request()
        self.send(listening.Ask(request=request, model=ModelId(model), streaming=True))
        return request

    def receive(self, timeout_s: float) -> list[listening.FromScheduler]:
        """What has come, waiting for it at most so long."""
        return [codec.decode_from_scheduler(frame) for frame in self.receive_frames(timeout_s)]

    def receive_frames(self, timeout_s: float) -> list[bytes]:
        """The same, not decoded yet."""
        frames = self._socket.receive()
        if not frames and self._socket.wait(Seconds(timeout_s)):
            frames = self._socket.receive()
        return frames

    def wait(
        self,
        wanted: Callable[[listening.FromScheduler], bool],
        what: str,
        *,
        timeout_s: float = 10.0,
    ) -> int:
        """Waits for a message, and says when it came: monotonic, in ns.

        Raises:
            BenchError: It did not come in time, or the scheduler refused.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for message in self.receive(_BEAT_S):
                if wanted(message):
                    return time.monotonic_ns()
                if isinstance(message, listening.Refused):
                    raise BenchError(
                        f"waiting for {what}: the scheduler refused: {message.message}"
                    )
            self.send(listening.Beat(waiting=1, held=0))
        raise BenchError(f"the scheduler sent no {what} within {timeout_s:g} s")

    def wait_for_grant(self, request: RequestId) -> int:
        """Waits for the grant of a request, and takes it; when it came."""
        at = self.wait(
            lambda message: isinstance(message, listening.Granted) and message.request == request,
            f"grant for {request}",
        )
        self.send(listening.Accepted(request=request))
        return at

    def wait_for_place(self, request: RequestId, place: int) -> int:
        """Waits until a request is told this place in the line; when that was."""
        return self.wait(
            lambda message: (
                isinstance(message, listening.Moved) and (request, place) in message.places
            ),
            f"place {place} for {request}",
        )

    def finish(self, request: RequestId) -> None:
        """The work under a grant is done."""
        self.send(listening.Done(request=request, outcome="finished"))

    def leave(self, request: RequestId) -> None:
        """The client of a waiting request went away."""
        self.send(listening.Leave(request=request))

    def close(self) -> None:
        """Disconnects."""
        self._socket.close()
