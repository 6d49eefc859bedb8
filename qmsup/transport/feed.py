"""The feed's two ends: a PUB socket in the scheduler that knows what is subscribed to, and a SUB socket of a reader."""

import secrets
import time
from collections import Counter
from collections.abc import Iterable

import zmq

from qmsup.ids import Epoch
from qmsup.transport import context
from qmsup.transport.doorkeeper import Doorkeeper, doorkeepers_of
from qmsup.transport.naming import name_again
from qmsup.units import Seconds, ms_from_seconds
from qmsup.wire import feed
from qmsup.wire.feed import Item

_KEPT = 10_000
"""Messages kept for a reader that is slow; it sees by their numbers what it missed."""
_LONGEST_SUBSCRIPTION = 256
_LARGEST = 4096
"""Bytes of what a reader sends: subscriptions, and nothing else is looked at."""
_MOST_TOPICS = 10_000
_MOST_PEERS = 256
"""Programs remembered for one topic, so that each can take back what it said itself."""


class _Readers:
    """How many subscribed to one topic.

    Anybody may send that a topic is wanted no longer, whether or not he subscribed to it, and ZeroMQ tells of that in
    the same words. So each is believed about what he said himself; that a connection has ended nobody can pretend.
    """

    def __init__(self) -> None:
        self._count = 0
        self._said: Counter[str] = Counter()

    def add(self, peer: str) -> None:
        self._count += 1
        self._said[peer] += 1
        if len(self._said) > _MOST_PEERS:
            del self._said[next(iter(self._said))]

    def take_off(self, peer: str) -> bool:
        """One fewer, if that can be believed; whether there are any still. "" = a connection has ended."""
        if peer and not self._said[peer]:
            return True
        if peer:
            self._said[peer] -= 1
        self._count -= 1
        return self._count > 0


def _peer_of(frame: zmq.Frame) -> str:
    """The program that sent this, by its ids; "" = nobody did, ZeroMQ tells of the end of a connection."""
    try:
        return str(frame.get("Peer-Address"))
    except zmq.ZMQError:
        return ""


class FeedSocket:
    """Publishes. For one thread, the one that made it; its descriptor is edge-triggered (see RouterSocket)."""

    def __init__(self, endpoint: str) -> None:
        """Bind; a socket file left by a dead process is replaced.

        Raises:
            OSError: the address cannot be bound.
        """
        self._endpoint = endpoint
        self._socket = context.new_socket(zmq.XPUB, endpoint)
        self._socket.setsockopt(zmq.LINGER, ms_from_seconds(context.LINGER))
        self._socket.setsockopt(zmq.SNDHWM, _KEPT)
        self._socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _LARGEST)
        self._topics: dict[bytes, _Readers] = {}
        self._newcomers: list[bytes] = []
        self.doorkeepers: tuple[Doorkeeper, ...] = doorkeepers_of(self._socket, endpoint)
        """As RouterSocket's."""
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as e:
            self._socket.close(linger=0)
            for keeper in self.doorkeepers:
                keeper.close()
            raise context.os_error(e, endpoint) from e

    def name_again(self) -> bool:
        """As RouterSocket's."""
        return name_again(self._socket, self._endpoint)

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
        """Read who subscribed and who is gone. True if other topics are wanted now."""
        before = self._topics.keys() | ()
        while context.is_readable(self._socket):
            frame = self._socket.recv(context.NOW, copy=False)
            word = frame.bytes
            if word[:1] == b"\1":
                self._add(word[1:], _peer_of(frame))
            elif word[:1] == b"\0":
                self._take_off(word[1:], _peer_of(frame))
            # What else a reader may send is no word about topics: others' stay.
        return self._topics.keys() != before

    def _add(self, topic: bytes, peer: str) -> None:
        if len(topic) > _LONGEST_SUBSCRIPTION or len(self._topics) >= _MOST_TOPICS:
            return
        self._topics.setdefault(topic, _Readers()).add(peer)
        if topic.startswith(feed.HELLO.encode()):
            self._newcomers.append(topic)

    def greet(self) -> None:
        """Tell those who came since the last call that their subscriptions are in force."""
        newcomers, self._newcomers = self._newcomers, []
        for topic in newcomers:
            self._send(topic, b"{}")

    def _take_off(self, topic: bytes, peer: str) -> None:
        readers = self._topics.get(topic)
        if readers is not None and not readers.take_off(peer):
            del self._topics[topic]

    def publish(self, epoch: Epoch, seq: int, at: float, topic: str, body: object) -> None:
        """Send one message to whoever wants it. One that is not taken is lost, which its number tells."""
        self._send(*feed.encode(Item(epoch=epoch, seq=seq, time=at, topic=topic, body=body)))

    def close(self) -> None:
        """Unbind and close."""
        for keeper in self.doorkeepers:
            keeper.close()
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
            OSError: the address is no address, or there is no descriptor left.
        """
        self._hello = f"{feed.HELLO}{secrets.token_hex(8)}".encode()
        self._socket = context.new_socket(zmq.SUB, endpoint)
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
