"""Bodies of `queue` and `explain`, made of a real state and a real journal; over the socket at the end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from qmsup.actors import explaining
from qmsup.actors.answers import BadQuestionError
from qmsup.actors.journal import Journal
from qmsup.core.scheduling.events import RequestArrived
from qmsup.errors import Code, RequestError
from qmsup.units import Seconds
from qmsup.wire.listening import Moved
from tests.support.journals import Session, header_of
from tests.support.scheduler_actor import ControlPeer, WorkerPeer
from tests.support.scheduling import event_of


class Box:
    """A session with its journal, asked as a control client would."""

    def __init__(self, former: Sequence[bytes] = ()) -> None:
        self.lines: list[bytes] = []
        epoch = 2 if former else 1
        self.journal = Journal(header_of(epoch=epoch), write=self.lines.append, former=former)
        self.session = Session(self.journal.note)

    def explain(self, **args: object) -> Any:
        desk = self.session.desk
        return explaining.explain(args, desk.scheduler.state, self.journal, Seconds(desk.now))

    def queue(self) -> Any:
        desk = self.session.desk
        return explaining.queue(desk.scheduler.state, Seconds(desk.now))

    def story(self, **args: object) -> list[str]:
        return [told["text"] for told in self.explain(**args)["story"]]


@pytest.fixture
def box() -> Box:
    box = Box()
    box.session.say("w1 joins", "r1 asks a", "a1 ready", "r1 accepts", "at 1", "r2 asks c")
    box.session.say("c2 ready", "r2 accepts", "at 2")
    arrival = event_of("r3 asks b")
    assert isinstance(arrival, RequestArrived)
    box.session.tell(replace(arrival, patience=Seconds(5.0)))
    box.session.say("at 3.5")
    return box


def test_the_queue_tells_places_and_loads(box: Box) -> None:
    box.session.say("load l b")
    (first, second) = box.queue()["queue"]

    assert (first["position"], first["request"], first["model"]) == (1, "r3", "b")
    assert (first["listener"], first["waited_s"], first["because"]) == ("main", 1.5, "busy")
    assert first["patience_left_s"] == 3.5
    assert (second["request"], second["listener"]) == (None, None)
    assert box.queue()["loading"] == []
    box.session.say("r1 ends")
    assert box.queue() == {"queue": [], "loading": [{"model": "b", "waiting": 2}]}


def test_a_model_is_explained_with_numbers_and_its_past(box: Box) -> None:
    told = box.explain(model="b")

    assert told["now"] == ("b is stopped",)
    assert told["evicts"] == ("a",)
    assert told["reasons"][0] == "b needs 5 MiB; 10 MiB of 11 MiB VRAM are in use"
    assert told["obstacles"] == ("a would have to stop and has 1 request in flight: r1",)
    assert [place["request"] for place in told["waiting"]] == ["r3"]
    assert box.story(model="a") == [
        "loading a for r1 began; nothing has to stop for it",
        "a is ready, 0.000 s after that was decided",
    ]


def test_a_model_s_past_is_cut_to_what_was_last(box: Box) -> None:
    for n in range(40):
        box.session.say(f"unload u{n} c")

    assert len(box.story(model="c")) == 20


def test_a_request_that_waits_is_explained_with_what_keeps_it(box: Box) -> None:
    told = box.explain(request="r3")

    assert (told["model"], told["request"]) == ("b", "r3")
    assert told["now"][0].startswith("has waited 1.500 s, at place 1 of 1 now")
    assert "a would have to stop and has 1 request in flight: r1" in told["now"]
    assert told["story"][0]["text"] == "arrived for b, from w1"
    assert {told["epoch"] for told in told["story"]} == {1}


def test_a_request_s_story_has_the_loads_it_waited_for(box: Box) -> None:
    session = box.session
    session.say("r1 ends", "r4 asks b", "a1 gone", "at 4", "b3 fails", "at 40")
    session.say("r5 asks b", "b4 ready", "r5 accepts", "r5 ends")

    story = box.story(request="r4")

    assert story[0] == "arrived for b, from w1"
    assert "b could not be loaded: exited with 1" in story
    assert story[-1].startswith("refused, model_load_failed")
    assert "loading b for r5 began; nothing has to stop for it" not in story, "that was later"
    assert box.explain(request="r4")["now"] == ()


def test_a_load_that_a_new_scheduler_began_again_is_told_so() -> None:
    """Else it would stand there twice, for no reason."""
    lines: list[bytes] = []
    former = Journal(header_of(), write=lines.append)
    Session(former.note).say("w1 joins", "r1 asks a")
    former.flush()
    box = Box(former=b"".join(lines).splitlines())

    box.session.say("w1 joins", "r1 asks a", "a1 ready")

    began, anew, again, ready = box.story(model="a")
    assert began == again
    assert began.startswith("loading a for r1 began")
    assert anew.startswith("the scheduler was started anew")
    assert ready.startswith("a is ready")
    epochs = [(told["epoch"], told["turn"]) for told in box.explain(model="a")["story"]]
    assert epochs[1] == (2, 0)
    assert [epoch for epoch, _ in epochs] == [1, 2, 2, 2]


def test_what_is_not_known_is_told_so(box: Box) -> None:
    with pytest.raises(RequestError) as unknown:
        box.explain(request="q-none")
    assert unknown.value.refusal.code is Code.NOT_FOUND
    assert "the journal goes back to 20" in unknown.value.refusal.message

    with pytest.raises(RequestError) as missing:
        box.explain(model="bb")
    assert missing.value.refusal.code is Code.MODEL_NOT_FOUND

    with pytest.raises(RequestError, match="goes back to nothing yet"):
        Box().explain(request="r1")


@pytest.mark.parametrize(
    "args", [{}, {"model": ""}, {"model": 3}, {"request": ""}, {"model": "a", "request": "r1"}]
)
def test_a_question_about_nothing_or_two_things_is_a_bad_one(
    box: Box, args: dict[str, object]
) -> None:
    with pytest.raises(BadQuestionError, match="name a"):
        box.explain(**args)


def test_the_actor_answers_both(worker: WorkerPeer, client: ControlPeer) -> None:
    for request in ("r1", "r2"):
        worker.takes_up(request)
    worker.ask("r3")
    worker.hears(Moved)

    (place,) = client.body("queue")["queue"]
    told = client.body("explain", request="r3")

    assert (place["request"], place["because"]) == ("r3", "at_limit")
    assert told["now"][1] == "all 2 places of m are in use"
    assert client.body("explain", model="m")["now"][1] == "in use by r1, r2"
    assert client.refusal("explain", model="nobody")[0] == "model_not_found"
    assert client.refusal("explain")[0] == "bad_request"
