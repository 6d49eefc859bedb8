"""The real scheduler actor on its real socket, and peers that talk to it as a worker or a control client would."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pykka
from pykka.messages import ProxyGetAttr

from qmsup import places
from qmsup.actors.life import Life
from qmsup.actors.sampling import SampleReader
from qmsup.actors.scheduler import SchedulerActor
from qmsup.actors.tree import end_actors
from qmsup.ids import Epoch, Incarnation, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import ModelSpec, Spec
from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.units import MiB, Seconds
from qmsup.wire import codec, listening
from qmsup.wire.controlling import VERSION, Question, Reply
from tests.support.children import fake_spec

PATIENCE = 20.0
EPOCH = Epoch(3)
FIRST_INCARNATION = Incarnation(3_000_001)
_WAIT = Seconds(0.05)

M = TypeVar("M", bound=listening.FromScheduler)


def models_of(*specs: ModelSpec, **others: Any) -> Spec:
    """A configuration in which one of these models fits at a time."""
    sized = [replace(spec, est_vram=MiB(3000)) for spec in specs]
    return Spec(models={spec.id: spec for spec in sized}, vram_budget=MiB(4000), **others)


QUICK = replace(fake_spec(), slots=2, name="The Model", description="for tests")
"""m: ready at once, two requests side by side."""
SLOW = fake_spec("--load-seconds", "60", model="slow")
BROKEN = fake_spec("--exit-code", "3", model="broken")


def lease(request: str) -> listening.Holding:
    """A lease on the first child of m, as a worker tells of it."""
    return listening.Holding(
        request=RequestId(request), model=ModelId("m"), incarnation=FIRST_INCARNATION
    )


def becomes(look: Callable[[], object], wanted: object) -> None:
    """Wait for a value; the last one seen stands in the failure."""
    deadline = time.monotonic() + PATIENCE
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, f"{seen} and not {wanted}"
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """The actor, how it ended, and who talks to it."""

    ref: pykka.ActorRef[SchedulerActor]
    ended: threading.Event = field(default_factory=threading.Event)
    broke: threading.Event = field(default_factory=threading.Event)
    _peers: list["WorkerPeer | ControlPeer"] = field(default_factory=list)

    def worker(self, name: str = "main-1-abc", *, greets: bool = True) -> "WorkerPeer":
        """Another worker's connection; it has greeted unless told otherwise."""
        peer = WorkerPeer(WorkerId(name))
        self._peers.append(peer)
        if greets:
            peer.greet()
        return peer

    def client(self, name: str = "ctl-1-abc") -> "ControlPeer":
        """Another control client's connection."""
        peer = ControlPeer(name)
        self._peers.append(peer)
        return peer

    def close(self) -> None:
        """Hang up, all peers."""
        for peer in self._peers:
            peer.close()


@contextmanager
def scheduler_of(
    spec: Spec, folder: Path, *, open_reader: Callable[[], SampleReader] | None = None
) -> Iterator[RunningScheduler]:
    """Start it on the places' socket, and end it with all its children.

    With a reader it reads the memory too.
    """
    places.make_private(places.runtime_dir())
    places.make_private(places.state_dir())
    ended, broke = threading.Event(), threading.Event()
    life = Life(
        epoch=EPOCH,
        endpoint=places.scheduler_endpoint(),
        config=folder / "config.yaml",
        since=time.time(),
        open_reader=open_reader,
    )
    ref = SchedulerActor.start(
        spec=spec,
        first_incarnation=FIRST_INCARNATION,
        life=life,
        on_end=ended.set,
        on_break=broke.set,
    )
    running = RunningScheduler(ref, ended, broke)
    try:
        with suppress(pykka.ActorDeadError):  # it has begun when it answers, unless it cannot
            ref.ask(ProxyGetAttr(attr_path=("actor_urn",)), timeout=PATIENCE)
        yield running
    finally:
        running.close()
        end_actors()
        context.destroy()


class WorkerPeer:
    """A listener's worker, as far as the scheduler sees it. It says only what it is told to say."""

    def __init__(self, name: WorkerId) -> None:
        self.name = name
        self.heard: list[listening.FromScheduler] = []
        self._dealer = DealerSocket(places.scheduler_endpoint(), name.encode())

    def say(self, *messages: listening.FromWorker) -> None:
        """Send messages, together."""
        self._dealer.send([codec.encode(message) for message in messages])

    def say_bytes(self, frame: bytes) -> None:
        """Send what may be no message."""
        self._dealer.send([frame])

    def listens(self) -> list[listening.FromScheduler]:
        """What has come that was not looked at yet."""
        self._listen()
        return self.heard

    def greet(
        self,
        *,
        pid: int | None = None,
        leases: tuple[listening.Holding, ...] = (),
        waiting: tuple[listening.Waiting, ...] = (),
    ) -> listening.Welcome:
        """Say hello and wait for the welcome."""
        self.say(self.hello(pid=pid, leases=leases, waiting=waiting))
        return self.hears(listening.Welcome)

    def hello(
        self,
        *,
        pid: int | None = None,
        leases: tuple[listening.Holding, ...] = (),
        waiting: tuple[listening.Waiting, ...] = (),
    ) -> listening.Hello:
        """A greeting of a worker whose process is this one, or another."""
        return listening.Hello(
            version=listening.VERSION,
            worker=self.name,
            listener=ListenerName("main"),
            pid=os.getpid() if pid is None else pid,
            leases=leases,
            waiting=waiting,
        )

    def ask(self, request: str, model: str = "m", **more: Any) -> None:
        """Ask for a model."""
        self.say(listening.Ask(request=RequestId(request), model=ModelId(model), **more))

    def takes_up(self, request: str, model: str = "m") -> listening.Granted:
        """Ask, wait for the grant, and accept it."""
        self.ask(request, model)
        granted = self.hears(listening.Granted)
        assert granted.request == request
        self.say(listening.Accepted(request=granted.request))
        return granted

    def hears(self, kind: type[M]) -> M:
        """The next message of a kind; what came before it is forgotten."""
        deadline = time.monotonic() + PATIENCE
        passed = list[listening.FromScheduler]()
        while time.monotonic() < deadline:
            while self.heard:
                message = self.heard.pop(0)
                if isinstance(message, kind):
                    return message
                passed.append(message)
            self._listen()
        raise AssertionError(f"no {kind.__name__} among {passed}")

    def close(self) -> None:
        """Hang up."""
        self._dealer.close()

    def _listen(self) -> None:
        self._dealer.wait(_WAIT)
        self.heard += map(codec.decode_from_scheduler, self._dealer.receive())


class ControlPeer:
    """A control client."""

    def __init__(self, name: str) -> None:
        self._dealer = DealerSocket(places.scheduler_endpoint(), name.encode())
        self._ids = map(str, itertools.count(1))

    def close(self) -> None:
        """Hang up."""
        self._dealer.close()

    def ask(self, verb: str, **args: object) -> Reply:
        """Ask once and wait for the answer."""
        return self.answer_to(self.send(verb, args))

    def body(self, verb: str, **args: object) -> Any:
        """The body of the answer."""
        reply = self.ask(verb, **args)
        assert reply.ok, reply.error
        return reply.body

    def refusal(self, verb: str, **args: object) -> tuple[str, str]:
        """The code and the words of a question's refusal."""
        reply = self.ask(verb, **args)
        assert reply.error is not None, reply.body
        return reply.error.code, reply.error.message

    def send(self, verb: str, args: Mapping[str, object], *, id_: str = "") -> str:
        """Ask without waiting, or ask again; the question's id."""
        id_ = id_ or next(self._ids)
        question = Question(v=VERSION, id=id_, verb=verb, args=dict(args))
        self._dealer.send([codec.encode_question(question)])
        return id_

    def answer_to(self, id_: str) -> Reply:
        """Wait for the answer to a question."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for frame in self._dealer.receive():
                reply = codec.decode_reply(frame)
                if reply.id == id_:
                    return reply
            self._dealer.wait(_WAIT)
        raise AssertionError(f"no answer to question {id_}")

    def model(self, name: str = "m") -> dict[str, Any]:
        """A model's row of `ps`."""
        return next(row for row in self.body("ps")["models"] if row["name"] == name)

    def worker(self, name: str = "main-1-abc") -> dict[str, Any]:
        """A worker's row of `status`, {} when there is none."""
        rows = self.body("status")["listeners"]
        return next((row for row in rows if row["worker"] == name), {})
