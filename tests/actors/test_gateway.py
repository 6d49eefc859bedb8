"""The gateway is translation: each message and effect is checked over a real pair of sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup.actors import askers
from qmsup.actors.copies import Copy
from qmsup.actors.gateway import Asked, Gateway, Heard
from qmsup.actors.worker_messages import Greeted
from qmsup.core.scheduling import effects as do
from qmsup.core.scheduling import events as happened
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.views import Tally
from qmsup.errors import Code, Refusal
from qmsup.ids import (
    AskId,
    Epoch,
    EventNumber,
    Incarnation,
    LeaseId,
    ListenerName,
    ModelId,
    RequestId,
    WorkerId,
)
from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds
from qmsup.wire import codec, controlling, listening

WORKER = WorkerId("main-1-abc")
A = ModelId("a")
R = RequestId("q-1")
CAUSE = EventNumber(7)


class Wired:
    """A gateway and one peer of it."""

    def __init__(self, folder: Path) -> None:
        endpoint = f"ipc://{folder}/s"
        self.router = RouterSocket(endpoint)
        self.dealer = DealerSocket(endpoint, WORKER.encode())
        self.gateway = Gateway(self.router, Epoch(3))
        self.dealer.send([codec.encode(listening.Beat(waiting=0, held=0))])
        self.next_from_peer()

    def next_from_peer(self) -> tuple[bytes, bytes]:
        while True:
            for sender, frames in self.router.receive():
                return sender, frames[0]

    def next_to_peer(self) -> bytes:
        assert self.dealer.wait(Seconds(5.0))
        return self.dealer.receive()[0]

    def to_worker(
        self, effect: do.Grant | do.Refuse | do.Cut | do.LineMoved | do.TellLoading
    ) -> object:
        self.gateway.tell(effect)
        self.gateway.send_gathered()
        return codec.decode_from_scheduler(self.next_to_peer())


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[Wired]:
    wired = Wired(tmp_path)
    yield wired
    wired.dealer.close()
    wired.router.close()
    context.destroy()


MESSAGES: dict[str, tuple[listening.FromWorker, happened.Event]] = {
    "ask": (
        listening.Ask(
            request=R,
            model=A,
            streaming=True,
            hold_ms=250,
            patience_ms=0,
            conversation="c",
            client="k",
        ),
        happened.RequestArrived(
            request=R,
            listener=WORKER,
            model=A,
            streaming=True,
            hold=Seconds(0.25),
            patience=Seconds(0.0),
            conversation="c",
            client="k",
        ),
    ),
    "asked again": (
        listening.Ask(request=R, model=ModelId("m"), waited_ms=1500),
        happened.RequestArrived(
            request=R, listener=WORKER, model=ModelId("m"), waited=Seconds(1.5)
        ),
    ),
    "leave": (listening.Leave(request=R), happened.RequestAbandoned(request=R)),
    "accepted": (listening.Accepted(request=R), happened.GrantAccepted(request=R)),
    "declined": (listening.Declined(request=R), happened.GrantDeclined(request=R)),
    "done": (
        listening.Done(request=R, outcome="finished", served=True),
        happened.LeaseReleased(lease=LeaseId(R), outcome=happened.Outcome.FINISHED, served=True),
    ),
    "done after further uses": (
        listening.Done(
            request=R,
            outcome="finished",
            uses=(
                listening.Use(request=RequestId("q-2"), outcome="finished"),
                listening.Use(
                    request=RequestId("q-3"),
                    outcome="transcended",
                    served=False,
                    hold_ms=250,
                    conversation="c",
                    client="k",
                ),
            ),
        ),
        happened.LeaseReleased(
            lease=LeaseId(R),
            outcome=happened.Outcome.FINISHED,
            uses=(
                happened.Use(request=RequestId("q-2"), outcome=happened.Outcome.FINISHED),
                happened.Use(
                    request=RequestId("q-3"),
                    outcome=happened.Outcome.UNKNOWN,
                    served=False,
                    hold=Seconds(0.25),
                    conversation="c",
                    client="k",
                ),
            ),
        ),
    ),
    "a further use lasts": (
        listening.Lasts(
            request=R,
            model=ModelId("m"),
            incarnation=Incarnation(7),
            hold_ms=250,
            conversation="c",
            client="k",
        ),
        UseLasted(
            listener=WORKER,
            request=R,
            model=ModelId("m"),
            incarnation=Incarnation(7),
            hold=Seconds(0.25),
            conversation="c",
            client="k",
        ),
    ),
    "done with an outcome of a later version": (
        listening.Done(request=R, outcome="transcended", served=False),
        happened.LeaseReleased(lease=LeaseId(R), outcome=happened.Outcome.UNKNOWN, served=False),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_worker_s_message_becomes_an_event(wired: Wired, name: str) -> None:
    message, event = MESSAGES[name]

    assert wired.gateway.read(WORKER.encode(), codec.encode(message)) == Heard(WORKER, event)


def test_a_beat_tells_what_the_worker_has(wired: Wired) -> None:
    beat = codec.encode(listening.Beat(waiting=1, held=2))

    assert wired.gateway.read(WORKER.encode(), beat) == Heard(WORKER, Tally(waiting=1, held=2))


def test_a_greeting_tells_leases_and_waiters_with_their_time(wired: Wired) -> None:
    hello = listening.Hello(
        version=listening.VERSION,
        worker=WORKER,
        listener=ListenerName("main"),
        pid=42,
        leases=(
            listening.Holding(request=R, model=A, incarnation=Incarnation(6)),
            listening.Holding(
                request=RequestId("q-3"),
                model=A,
                incarnation=Incarnation(6),
                hold_ms=0,
                conversation="c",
                client="k",
                waited_ms=250,
            ),
        ),
        waiting=(listening.Waiting(request=RequestId("q-2"), model=A, waited_ms=1500),),
        lends=True,
    )

    read = wired.gateway.read(WORKER.encode(), codec.encode(hello))

    assert isinstance(read, Greeted)
    assert (read.event.name, read.event.pid, read.event.lends) == ("main", 42, True)
    assert read.event.leases == (
        happened.LiveLease(request=R, model=A, incarnation=Incarnation(6)),
        happened.LiveLease(
            request=RequestId("q-3"),
            model=A,
            incarnation=Incarnation(6),
            hold=Seconds(0.0),
            conversation="c",
            client="k",
            waited=Seconds(0.25),
        ),
    )
    assert [(w.request, w.waited) for w in read.event.waiting] == [("q-2", 1.5)]


@pytest.mark.parametrize(("told", "believed"), [(-5, 0.0), (2**64 - 1, 366 * 24 * 3600.0)])
def test_a_past_that_nobody_can_have_had_is_not_told_again(
    wired: Wired, told: int, believed: float
) -> None:
    """A grant tells how long was waited for it, and there are numbers that no message takes."""
    hello = listening.Hello(
        version=listening.VERSION,
        worker=WORKER,
        listener=ListenerName("main"),
        pid=42,
        leases=(listening.Holding(request=R, model=A, incarnation=Incarnation(6), waited_ms=told),),
        waiting=(listening.Waiting(request=RequestId("q-2"), model=A, waited_ms=told),),
    )
    ask = listening.Ask(request=RequestId("q-3"), model=A, waited_ms=told)

    greeted = wired.gateway.read(WORKER.encode(), codec.encode(hello))
    heard = wired.gateway.read(WORKER.encode(), codec.encode(ask))

    assert isinstance(greeted, Greeted)
    assert isinstance(heard, Heard)
    assert isinstance(heard.said, happened.RequestArrived)
    waited = [lease.waited for lease in greeted.event.leases]
    waited += [waiting.waited for waiting in (*greeted.event.waiting, heard.said)]
    assert waited == [believed] * 3


def test_a_worker_of_another_version_is_refused_in_words(wired: Wired) -> None:
    hello = listening.Hello(version=99, worker=WORKER, listener=ListenerName("main"), pid=42)

    assert wired.gateway.read(WORKER.encode(), codec.encode(hello)) is None
    answer = codec.decode_from_scheduler(wired.next_to_peer())
    assert isinstance(answer, listening.Unwelcome)
    assert not answer.greet
    assert "99" in answer.reason


def test_a_stranger_is_asked_to_greet(wired: Wired) -> None:
    wired.gateway.ask_to_greet(WORKER)

    answer = codec.decode_from_scheduler(wired.next_to_peer())
    assert isinstance(answer, listening.Unwelcome)
    assert answer.greet


def test_effects_become_messages(wired: Wired) -> None:
    no = Refusal(code=Code.LINE_FULL, message="full", retry_after=Seconds(3.0))
    grant = do.Grant(
        cause=CAUSE,
        request=R,
        listener=WORKER,
        model=A,
        incarnation=Incarnation(6),
        upstream="127.0.0.1:5800",
        was_ready=False,
        waited=Seconds(0.0415),
    )

    assert wired.to_worker(grant) == listening.Granted(
        request=R,
        epoch=Epoch(3),
        model=A,
        incarnation=Incarnation(6),
        upstream="127.0.0.1:5800",
        was_ready=False,
        waited_ms=42,
    )
    assert wired.to_worker(
        do.Refuse(cause=CAUSE, request=R, listener=WORKER, refusal=no)
    ) == listening.Refused(request=R, code="line_full", message="full", retry_after_s=3.0)
    assert wired.to_worker(
        do.Cut(cause=CAUSE, request=R, listener=WORKER, refusal=no)
    ) == listening.CutOff(request=R, code="line_full", message="full")
    assert wired.to_worker(
        do.Cut(cause=CAUSE, request=R, listener=WORKER, refusal=no, had_lapsed=True)
    ) == listening.CutOff(request=R, code="line_full", message="full", had_lapsed=True)
    assert wired.to_worker(
        do.LineMoved(cause=CAUSE, listener=WORKER, places=((R, 2),), was_ready=True)
    ) == listening.Moved(places=((R, 2),), was_ready=True)
    assert wired.to_worker(
        do.TellLoading(cause=CAUSE, listener=WORKER, requests=(R,))
    ) == listening.Loading(request=R)
    assert wired.to_worker(
        do.TellLoading(cause=CAUSE, listener=WORKER, requests=(R, RequestId("r2")))
    ) == listening.Moved(places=((R, 0), (RequestId("r2"), 0)))


def test_an_effect_for_a_worker_that_is_gone_is_dropped(wired: Wired) -> None:
    gone = do.TellLoading(cause=CAUSE, listener=WorkerId("main-2-gone"), requests=(R,))

    wired.gateway.tell(gone)


def _question(verb: str, id_: str = "one", **args: object) -> bytes:
    return codec.encode_question(
        controlling.Question(v=controlling.VERSION, id=id_, verb=verb, args=args)
    )


def test_a_question_is_asked_once_and_answered_again_when_repeated(wired: Wired) -> None:
    frame = _question("load", model="a")
    asked = wired.gateway.read(WORKER.encode(), frame)
    assert isinstance(asked, Asked)
    assert (asked.verb, asked.args) == ("load", {"model": "a"})

    assert wired.gateway.read(WORKER.encode(), frame) is None
    wired.gateway.answer(do.Answer(cause=CAUSE, ask=asked.ask, text="ready"))
    first = codec.decode_reply(wired.next_to_peer())
    assert wired.gateway.read(WORKER.encode(), frame) is None
    second = codec.decode_reply(wired.next_to_peer())

    assert first == second
    assert (first.id, first.ok, first.body) == ("one", True, {"text": "ready"})


def test_a_refusal_reaches_the_asker_with_its_code(wired: Wired) -> None:
    asked = wired.gateway.read(WORKER.encode(), _question("load", model="b"))
    assert isinstance(asked, Asked)
    no = Refusal(code=Code.MODEL_NOT_FOUND, message="no model b")

    wired.gateway.answer(do.Answer(cause=CAUSE, ask=asked.ask, refusal=no))

    reply = codec.decode_reply(wired.next_to_peer())
    assert not reply.ok
    assert reply.error == controlling.Trouble(code="model_not_found", message="no model b")


def test_an_answer_nobody_asked_for_is_dropped(wired: Wired) -> None:
    wired.gateway.answer(do.Answer(cause=CAUSE, ask=AskId("nobody:1")))


def test_a_question_that_nobody_repeats_is_forgotten(wired: Wired) -> None:
    kept, lost = _question("load", id_="kept"), _question("load", id_="lost")
    for frame in (kept, lost):
        assert isinstance(wired.gateway.read(WORKER.encode(), frame), Asked)
    assert wired.gateway.is_awaited
    assert wired.gateway.vanished() == []
    wired.gateway.read(WORKER.encode(), kept)

    (gone,) = wired.gateway.vanished()

    assert gone.endswith(":lost")
    wired.gateway.answer(do.Answer(cause=CAUSE, ask=gone, text="too late"))
    asked = wired.gateway.read(WORKER.encode(), lost)
    assert isinstance(asked, Asked), "who comes back asks anew"
    wired.gateway.reply(asked.ask, {})
    assert codec.decode_reply(wired.next_to_peer()).id == "lost"


def test_a_question_that_there_is_no_room_for_is_refused_at_once(wired: Wired) -> None:
    for number in range(askers.MOST_OF_ONE):
        asked = wired.gateway.read(WORKER.encode(), _question("load", id_=str(number)))
        assert isinstance(asked, Asked)

    assert wired.gateway.read(WORKER.encode(), _question("ps", id_="more")) is None
    reply = codec.decode_reply(wired.next_to_peer())
    assert reply.error is not None
    assert (reply.id, reply.error.code) == ("more", "line_full")
    assert isinstance(wired.gateway.read(b"another", _question("ps")), Asked)


def test_unreadable_frames_are_answered_in_words(wired: Wired) -> None:
    assert wired.gateway.read(WORKER.encode(), b'{"v": 1, "id": "x"') is None
    assert not codec.decode_reply(wired.next_to_peer()).ok
    assert wired.gateway.read(WORKER.encode(), b"\xc1garbage") is None
    assert isinstance(codec.decode_from_scheduler(wired.next_to_peer()), listening.Unwelcome)


def test_workers_are_told_which_configuration_is_in_force(wired: Wired) -> None:
    configured = listening.Configured(version="2", path="/x/2.yaml")
    wired.gateway.welcome(WORKER)
    wired.gateway.configure(Copy(version="2", path=Path("/x/2.yaml")), [WORKER, WorkerId("gone")])
    wired.gateway.welcome(WORKER)
    wired.gateway.ask_to_greet(WORKER)

    heard: list[listening.FromScheduler] = []
    while not heard or not isinstance(heard[-1], listening.Unwelcome):
        assert wired.dealer.wait(Seconds(5.0))
        heard += map(codec.decode_from_scheduler, wired.dealer.receive())

    welcome = listening.Welcome(version=listening.VERSION, epoch=Epoch(3))
    assert heard[:-1] == [welcome, configured, welcome, configured]


def test_a_worker_that_missed_it_is_told_again(wired: Wired) -> None:
    wired.gateway.configure(Copy(version="2", path=Path("/x/2.yaml")), [])

    for known in ("2", "1"):
        beat = listening.Beat(waiting=0, held=0, configured=known)
        wired.gateway.read(WORKER.encode(), codec.encode(beat))

    configured = codec.decode_from_scheduler(wired.next_to_peer())
    assert configured == listening.Configured(version="2", path="/x/2.yaml")
    assert not wired.dealer.receive()
