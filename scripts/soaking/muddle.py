"""Stands between listeners' workers and the scheduler, and loses, repeats and delays what they tell each other."""

import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import zmq

from qmsup.transport.router import HEARTBEAT, HEARTBEAT_TIMEOUT
from qmsup.units import ms_from_seconds

_LONGEST_WAIT_MS = 100
_FRAMES = 64
"""So many multiparts are taken from a socket before the others have their turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Muddled:
    """What happens to messages.

    Attributes:
        loses: which part of them never arrives.
        repeats: which part arrives twice.
        latest_s: how long they may be under way. Their order is kept, as between two live peers.
    """

    loses: float = 0.0
    repeats: float = 0.0
    latest_s: float = 0.0


CLEAR = Muddled()


@dataclass(slots=True)
class _Way:
    """From one peer to another; what is under way, with the time at which it is due."""

    send: Callable[[list[bytes]], object]
    under_way: deque[tuple[float, list[bytes]]] = field(default_factory=deque)


@dataclass(slots=True)
class _Peer:
    """A worker, and its stand-in before the scheduler."""

    back: zmq.Socket[bytes]
    there: _Way
    home: _Way


class Muddle:
    """A ROUTER for the workers, and for each of them a DEALER of its name to the scheduler. One thread."""

    def __init__(self, front: Path, back: Path, dice: random.Random) -> None:
        """Nothing happens before it is entered.

        Args:
            front: the socket that workers connect to.
            back: the scheduler's.
            dice: what happens to each message.
        """
        self.muddled = CLEAR
        """May be replaced by any thread, at any time."""
        self.counts: Counter[str] = Counter()
        self._front_path, self._back_path = front, back
        self._dice = dice
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._peers: dict[bytes, _Peer] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muddle")
        self._front = self._context.socket(zmq.ROUTER)

    def __enter__(self) -> "Muddle":
        _set_up(self._front)
        self._front.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._front.bind(f"ipc://{self._front_path}")
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: object, _trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._front, zmq.POLLIN)
        while not self._is_over.is_set():
            for socket, _ in poller.poll(self._deliver()):
                if socket is self._front:
                    self._take_from_workers(poller)
            for peer in self._peers.values():
                self._take(peer.back, peer.home)
            self._bury(poller)

    def _take_from_workers(self, poller: zmq.Poller) -> None:
        for _ in range(_FRAMES):
            if not self._front.poll(0):
                return
            name, *frames = self._front.recv_multipart()
            peer = self._peers.get(name)
            if peer is None:
                peer = self._peers[name] = self._introduce(name)
                poller.register(peer.back, zmq.POLLIN)
            self._send_on(peer.there, frames)

    def _introduce(self, name: bytes) -> _Peer:
        back = self._context.socket(zmq.DEALER)
        _set_up(back)
        back.setsockopt(zmq.ROUTING_ID, name)
        back.setsockopt(zmq.RECONNECT_IVL, 10)
        back.connect(f"ipc://{self._back_path}")
        return _Peer(
            back=back,
            there=_Way(back.send_multipart),
            home=_Way(lambda frames: self._front.send_multipart([name, *frames])),
        )

    def _take(self, socket: zmq.Socket[bytes], way: _Way) -> None:
        for _ in range(_FRAMES):
            if not socket.poll(0):
                return
            self._send_on(way, socket.recv_multipart())

    def _send_on(self, way: _Way, frames: list[bytes]) -> None:
        muddled, dice = self.muddled, self._dice
        kept: list[bytes] = []
        for frame in frames:
            if dice.random() < muddled.loses:
                self.counts["lost"] += 1
                continue
            kept.append(frame)
            if dice.random() < muddled.repeats:
                self.counts["repeated"] += 1
                kept.append(frame)
        if not kept:
            return
        due = time.monotonic()
        if muddled.latest_s:
            due += dice.uniform(0.0, muddled.latest_s)
            self.counts["delayed"] += 1
        if way.under_way:
            due = max(due, way.under_way[-1][0])
        way.under_way.append((due, kept))

    def _deliver(self) -> int:
        """Send what is due; how many milliseconds there are until more is."""
        now, wait = time.monotonic(), _LONGEST_WAIT_MS
        for peer in self._peers.values():
            for way in (peer.there, peer.home):
                while way.under_way and way.under_way[0][0] <= now:
                    way.send(way.under_way.popleft()[1])
                if way.under_way:
                    wait = min(wait, 1 + int((way.under_way[0][0] - now) * 1000))
        return wait

    def _bury(self, poller: zmq.Poller) -> None:
        """A worker's name has its pid in it: what stands in for a dead one goes with it."""
        for name in [name for name in self._peers if not _lives(name)]:
            back = self._peers.pop(name).back
            poller.unregister(back)
            back.close(linger=0)


def _set_up(socket: zmq.Socket[bytes]) -> None:
    for bound in (zmq.SNDHWM, zmq.RCVHWM):
        socket.setsockopt(bound, 0)
    socket.setsockopt(zmq.HEARTBEAT_IVL, ms_from_seconds(HEARTBEAT))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, ms_from_seconds(HEARTBEAT_TIMEOUT))


def _lives(name: bytes) -> bool:
    pid = name.split(b"-")[-2]
    return Path(f"/proc/{pid.decode()}").exists()


def lay(folder: Path) -> tuple[Path, Path]:
    """Make a folder of sockets for the listeners beside that of the scheduler: the two paths of its socket.

    What is not muddled is reached by links.
    """
    behind, before = folder / "run", folder / "front"
    before.mkdir(mode=0o700)
    for name in ("feed.sock", "jobs.sock"):
        (before / name).symlink_to(os.path.relpath(behind / name, before))
    return before / "scheduler.sock", behind / "scheduler.sock"
