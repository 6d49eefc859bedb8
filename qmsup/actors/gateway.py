"""The scheduler actor's ear and mouth: frames of other processes become events, and effects become frames.

The scheduler actor's inbox is the ROUTER socket itself, so this is plain translation in the actor's thread:
no thread of its own, no queue.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from qmsup.actors.askers import Askers, Replies
from qmsup.actors.copies import Copy
from qmsup.actors.routed_messages import Routed, routed_of
from qmsup.actors.worker_messages import Greeted, ToWorker, arrived, greeted, message_of, said
from qmsup.core.scheduling.effects import Answer, Grant
from qmsup.core.scheduling.events import (
    Event,
)
from qmsup.core.scheduling.views import Tally
from qmsup.errors import Code, PeerError, Refusal
from qmsup.ids import AskId, Epoch, ListenerName, WorkerId
from qmsup.log import Log
from qmsup.transport.remote import Doors
from qmsup.transport.router import RouterSocket
from qmsup.wire import codec, controlling, listening

_PEERS = 1024
"""Names of peers kept ready: more than a box has workers."""

_log = Log("gateway")


@dataclass(frozen=True, slots=True)
class Heard:
    """A worker that has greeted said something: what happened, or with a beat what it has."""

    worker: WorkerId
    said: Event | Tally | Routed


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A control question that was not answered before; `ask` is the address of the answer."""

    ask: AskId
    verb: str
    args: Mapping[str, object]


class Gateway:
    """Reads frames and writes them, on the scheduler's ROUTER socket."""

    def __init__(
        self, router: RouterSocket | Doors, epoch: Epoch, copy: Copy | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            router: bound.
            epoch: of this life.
            copy: the configuration in force; None = workers go by what they have read themselves.
        """
        self._router = router
        self._epoch = epoch
        self._copy = copy
        self._askers = Askers()
        self._expected: dict[AskId, Mapping[str, object]] = {}
        self._replies = Replies()
        self.on_activity: Callable[[ListenerName, bytes], None] = _ignore
        """Takes what a listener's worker tells of requests that are over; `finished.read` reads it, where there is
        time for it."""

    def read(self, sender: bytes, frame: bytes) -> Greeted | Heard | Asked | None:
        """What a frame says; None when it was dealt with here (unreadable, or a repeated question)."""
        if codec.is_control(frame):
            return self._read_question(sender, frame)
        try:
            message = codec.decode_from_worker(frame)
        except PeerError as error:
            _log.warning_of_a_peer("worker.unreadable", sender=_text(sender), because=str(error))
            self._send(sender, listening.Unwelcome(reason=str(error), greet=False))
            return None
        if isinstance(message, listening.Activity):
            self.on_activity(message.listener, bytes(message.requests))
            return None
        worker = WorkerId(_text(sender))
        if isinstance(message, listening.Hello):
            return greeted(worker, message)
        if isinstance(message, listening.Beat):
            self._check_version(worker, message.configured)
        if isinstance(message, listening.Ask) and (way := message.routed) is not None:
            return Heard(worker, routed_of(arrived(worker, message), way))
        return Heard(worker, said(worker, message))

    def welcome(self, worker: WorkerId) -> None:
        """Answer a greeting."""
        self._send(worker.encode(), listening.Welcome(version=listening.VERSION, epoch=self._epoch))
        self._check_version(worker, "")

    def configure(self, copy: Copy, workers: Iterable[WorkerId]) -> None:
        """Tell every worker of another version of the configuration."""
        self._copy = copy
        for worker in workers:
            self._check_version(worker, "")

    def ask_to_greet(self, worker: WorkerId) -> None:
        """Tell a worker that this scheduler does not know it (yet, or any more), or not what it has."""
        self._send(worker.encode(), listening.Unwelcome(reason="not known here", greet=True))

    def send(self, worker: WorkerId, message: listening.FromScheduler) -> None:
        """Carry a message to a worker as it is."""
        self._send(worker.encode(), message)

    def tell(self, effect: ToWorker) -> None:
        """Carry an effect to the worker it names. A worker that is gone is noticed elsewhere, by its process."""
        receiver, message = effect.listener.encode(), message_of(effect, self._epoch)
        if type(effect) is Grant:  # many may come of one event, or of many that were read together
            self._router.gather(receiver, codec.encode(message))
        else:
            self._send(receiver, message)

    def send_gathered(self) -> None:
        """Let what was told travel now: for who has more to do before the next wait."""
        self._router.send_gathered()

    def answer(self, answer: Answer) -> None:
        """Carry the scheduler's answer to the control client that asked."""
        if answer.refusal is not None:
            self.refuse(answer.ask, answer.refusal)
        else:
            self.reply(answer.ask, {**self._expected.pop(answer.ask, {}), "text": answer.text})

    def expect(self, ask: AskId, body: Mapping[str, object]) -> None:
        """Say now what the answer to a question will tell beside the scheduler's words."""
        self._expected[ask] = body

    @property
    def is_awaited(self) -> bool:
        """Whether some question has no answer yet."""
        return len(self._askers) > 0

    def vanished(self) -> list[AskId]:
        """The questions that nobody has repeated since the last call; they are forgotten, and get no answer."""
        gone = self._askers.vanished()
        for ask in gone:
            self._expected.pop(ask, None)
        return gone

    def reply(self, ask: AskId, body: object) -> None:
        """Answer a control question with a body that JSON can hold."""
        self._reply(ask, ok=True, body=body, error=None)

    def refuse(self, ask: AskId, refusal: Refusal) -> None:
        """Answer a control question with a refusal."""
        trouble = controlling.Trouble(code=refusal.code, message=refusal.message)
        self._reply(ask, ok=False, body=None, error=trouble)

    def _reply(
        self, ask: AskId, *, ok: bool, body: object, error: controlling.Trouble | None
    ) -> None:
        self._expected.pop(ask, None)
        if (asker := self._askers.pop(ask)) is None:
            return
        reply = controlling.Reply(
            v=controlling.VERSION, id=asker.question_id, ok=ok, body=body, error=error
        )
        frame = codec.encode_reply(reply)
        self._replies.keep(ask, frame)
        self._router.send(asker.client, frame)

    def _read_question(self, sender: bytes, frame: bytes) -> Asked | None:
        try:
            question = codec.decode_question(frame)
        except PeerError as error:
            self._router.send(sender, codec.encode_reply(codec.refuse_unreadable(frame, error)))
            return None
        ask = AskId(f"{sender.hex()}:{question.id}")
        if self._askers.hear_again(ask):
            return None
        if (answered := self._replies.get(ask)) is not None:
            self._router.send(sender, answered)
            return None
        if why := self._askers.add(ask, sender, question.id):
            self._router.send(
                sender, codec.encode_reply(codec.refusal(question.id, Code.LINE_FULL, why))
            )
            return None
        return Asked(ask=ask, verb=question.verb, args=question.args)

    def _check_version(self, worker: WorkerId, told: str) -> None:
        copy = self._copy
        if copy is not None and copy.version != told:
            message = listening.Configured(version=copy.version, path=str(copy.path))
            self._send(worker.encode(), message)

    def _send(self, receiver: bytes, message: listening.FromScheduler) -> None:
        if not self._router.send(receiver, codec.encode(message)):
            _log.debug("worker.unreachable", worker=_text(receiver), message=type(message).__name__)


def _ignore(_listener: ListenerName, _requests: bytes) -> None:
    """Stands in until somebody keeps books."""


@lru_cache(maxsize=_PEERS)
def _text(identity: bytes) -> str:
    return identity.decode("utf-8", "backslashreplace")
