"""The feed's two ends: a PUB socket in the scheduler that knows what is subscribed to, and a SUB socket of a reader."""

import secrets
import time
from collections.abc import Iterable

import zmq

from qmsup.ids import Epoch
from qmsup.transport import context
from qmsup.units import Seconds, ms_from_seconds
from qmsup.wire import feed
from qmsup.wire.feed import Item

_KEPT = 10_000
"""Messages kept for a reader that is slow; it sees by their numbers what it missed."""
_LONGEST_SUBSCRIPTION = 256


class FeedSocket:
    """Publishes. For one thread, the one that made it; its descriptor is edge-triggered (see RouterSocket)."""

    def __init__(self, endpoint: str) -> None:
        """Bind; a socket file left by a dead process is replaced.

        Raises:
            OSError: the address cannot be bound.
        """
        self._socket = context.current().socket(zmq.XPUB)
        self._socket.setsockopt(zmq.LINGER, ms_from_seconds(context.LINGER))
        self._socket.setsockopt(zmq.SNDHWM, _KEPT)
        self._topics: set[bytes] = set()
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as e:
            self._socket.close(linger=0)
            raise context.os_error(e, endpoint) from e

    def fileno(self) -> int:
        """The descriptor to poll."""
        return int(self._socket.getsockopt(zmq.FD))

    @property
    def wanted(self) -> frozenset[str]:
        """The prefixes somebody subscribed to, as of the last `look`."""
        hello = feed.HELLO.encode()
        return frozenset(
            topic.decode("utf-8", "replace")
            for topic in self._topics
            if not topic.startswith(hello)
        )

    def look(self) -> bool:
        """Read who subscribed and who is gone, and greet newcomers. True if other topics are wanted now."""
        before = frozenset(self._topics)
        while context.is_readable(self._socket):
            word = self._socket.recv(context.NOW)
            topic = word[1:]
            if word[:1] == b"\1" and len(topic) <= _LONGEST_SUBSCRIPTION:
                self._topics.add(topic)
                if topic.startswith(feed.HELLO.encode()):
                    self._send(topic, b"{}")
            elif word[:1] == b"\0":
                self._topics.discard(topic)
            # What else a reader may send is no word about topics: others' stay.
        return self._topics != before

    def publish(self, epoch: Epoch, seq: int, at: float, topic: str, body: object) -> None:
        """Send one message to whoever wants it. One that is not taken is lost, which its number tells."""
        self._send(*feed.encode(Item(epoch=epoch, seq=seq, time=at, topic=topic, body=body)))

    def close(self) -> None:
        """Unbind and close."""
        self._socket.close()

    def _send(self, topic: bytes, text: bytes) -> None:
        self._socket.send(topic, context.MORE_NOW)
        self._socket.send(text, context.NOW)


class FeedReader:
    """Subscribes. For one thread."""

    def __init__(self, endpoint: str, topics: Iterable[str]) -> None:
        """Connect, whether or not there is a scheduler.

        Args:
            endpoint: of the feed.
            topics: prefixes; "" = everything.

        Raises:
            OSError: the address is no address.
        """
        self._hello = f"{feed.HELLO}{secrets.token_hex(8)}".encode()
        self._socket = context.current().socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        for topic in topics:
            self._socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        self._socket.setsockopt(zmq.SUBSCRIBE, self._hello)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as e:
            self._socket.close(linger=0)
            raise context.os_error(e, endpoint) from e

    def await_greeting(self, timeout: Seconds) -> bool:
        """Wait until the subscriptions are in force; whatever comes before is dropped. False = too late."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            if self._socket.poll(ms_from_seconds(Seconds(left))):
                topic, *_ = self._socket.recv_multipart(context.NOW)
                if topic == self._hello:
                    return True
        return False

    def receive(self, timeout: Seconds) -> list[Item]:
        """What has come, waiting for it at most this long.

        Raises:
            PeerError: what came is of another version.
        """
        items: list[Item] = []
        if context.is_readable(self._socket) or self._socket.poll(ms_from_seconds(timeout)):
            while context.is_readable(self._socket):
                frames = self._socket.recv_multipart(context.NOW)
                if frames[0] != self._hello:
                    items.append(feed.decode(frames))
        return items

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
