"""A turn as a line and back: nothing that a replay needs is lost, nothing secret is kept."""

import json
from typing import get_args

import msgspec
import pytest

from qmsup.actors import journal_lines
from qmsup.actors.journal_lines import Header, LineWriter, is_header, is_kept, read
from qmsup.core.scheduling.effects import ArmWake, LineMoved, Remember
from qmsup.core.scheduling.events import (
    ConfigApplied,
    Event,
    LeaseReleased,
    ListenerJoined,
    LiveLease,
    Outcome,
    RequestArrived,
    Use,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryReturned,
    SeenBy,
)
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import EventNumber, Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.units import MiB, Seconds
from tests.support.journals import Session, header_of, secretive_spec

LINES = LineWriter(b"salt")
W1 = WorkerId("w1")


def turn_of(event: Event) -> Turn:
    return Turn(EventNumber(1), Seconds(1.5), event, [])


def arrival(conversation: str = "", model: str = "a") -> RequestArrived:
    return RequestArrived(
        request=RequestId("r1"),
        listener=W1,
        model=ModelId(model),
        conversation=conversation,
        patience=Seconds(0.5),
    )


def held(conversation: str = "", client: str = "") -> LiveLease:
    return LiveLease(
        request=RequestId("r0"),
        model=ModelId("a"),
        incarnation=Incarnation(1),
        conversation=conversation,
        client=client,
    )


def written_and_read(turn: Turn) -> Turn:
    back = read(LINES.turn(turn))
    assert isinstance(back, Turn)
    return back


@pytest.mark.parametrize("seed", range(3))
def test_every_turn_comes_back_as_it_was(seed: int) -> None:
    turns: list[Turn] = []
    Session(turns.append).be_busy(seed)

    for turn in turns:
        kept = [effect for effect in turn.effects if is_kept(effect)]
        if isinstance(turn.event, ConfigApplied):
            continue
        assert written_and_read(turn) == (turn.number, turn.now, turn.event, kept)
    kinds = {type(turn.event).__name__ for turn in turns}
    assert len(kinds) > 8, kinds


def test_what_each_child_holds_comes_back_with_its_number() -> None:
    held = {Incarnation(3_000_001): MiB(900), Incarnation(3_000_002): MiB(20)}
    returned = MemoryReturned(
        model=ModelId("a"), incarnation=Incarnation(1), returned=MiB(5), free=MiB(7), held=held
    )
    for event in (CeilingChanged(ceiling=MiB(9), free=MiB(7), held=held), returned):
        assert written_and_read(turn_of(event)).event == event


def test_wakes_and_many_moved_places_are_not_worth_keeping() -> None:
    places = tuple((RequestId(f"r{n}"), n) for n in (1, 2))
    one, many = (
        LineMoved(cause=EventNumber(1), listener=W1, places=these) for these in (places[:1], places)
    )

    assert is_kept(one)
    assert not is_kept(many)
    assert not is_kept(ArmWake(cause=EventNumber(1), at=None))


def test_a_conversation_can_be_told_from_others_and_not_be_read() -> None:
    def key(conversation: str, lines: LineWriter = LINES) -> str:
        turn = read(lines.turn(turn_of(arrival(conversation))))
        assert isinstance(turn, Turn)
        assert isinstance(turn.event, RequestArrived)
        return turn.event.conversation

    private = 'ada "@" home\n'
    assert key(private) == key(private) != key("bob")
    assert key("") == ""
    assert "ada" not in key(private)
    assert key(private, LineWriter(b"another life's")) != key(private)


def test_only_the_conversation_is_changed_whatever_else_reads_like_it() -> None:
    event = written_and_read(turn_of(arrival("a", model="a"))).event

    assert isinstance(event, RequestArrived)
    assert event.model == "a"
    assert event.conversation != "a"


def test_what_a_greeting_tells_of_conversations_is_veiled_too() -> None:
    joined = ListenerJoined(
        listener=W1,
        name=ListenerName("main"),
        pid=7,
        leases=(held("bob", client="10.0.0.7"), held()),
        waiting=(arrival("ada"), arrival("")),
    )

    line = LINES.turn(turn_of(joined))

    assert not any(told in line for told in (b"ada", b"bob", b"10.0.0.7"))
    event = written_and_read(turn_of(joined)).event
    assert isinstance(event, ListenerJoined)
    assert (event.waiting[1], event.leases[1]) == (joined.waiting[1], joined.leases[1])


@pytest.mark.parametrize("name", ['a"b', "a\\", '","client":"x', "\n\u00e9\U0001f600", "a\\\\"])
def test_a_conversation_of_any_name_is_the_same_wherever_it_is_told(name: str) -> None:
    joined = ListenerJoined(
        listener=W1,
        name=ListenerName(name),
        pid=7,
        leases=(held(name, client=name),),
        waiting=(arrival(name, model=name),),
    )

    one = written_and_read(turn_of(arrival(name, model=name))).event
    all_ = written_and_read(turn_of(joined)).event

    assert isinstance(one, RequestArrived)
    assert isinstance(all_, ListenerJoined)
    (lease,), (waiting,) = all_.leases, all_.waiting
    assert lease.conversation == lease.client == waiting.conversation == one.conversation != name
    assert {str(all_.name), str(waiting.model), str(one.model)} == {name}


def test_a_greeting_with_thousands_of_conversations_is_passed_over_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[object] = []

    def encode(value: object) -> bytes:
        encoded.append(value)
        return msgspec.json.encode(value)

    monkeypatch.setattr(journal_lines, "_encode", encode)
    leases = tuple(held(f"conversation {n}") for n in range(5000))
    joined = ListenerJoined(listener=W1, name=ListenerName("main"), pid=7, leases=leases)

    line = LINES.turn(turn_of(joined))

    assert b"conversation 4999" not in line
    assert len(encoded) == 2, "the event, and the line with it: nothing for each conversation"


def test_what_a_lent_lease_was_used_for_is_veiled_too() -> None:
    use = Use(
        request=RequestId("r2"), outcome=Outcome.FINISHED, conversation="ada", client="10.0.0.7"
    )
    released = LeaseReleased(lease=LeaseId("r1"), outcome=Outcome.FINISHED, uses=(use,))

    line = LINES.turn(turn_of(released))

    assert not any(told in line for told in (b"ada", b"10.0.0.7"))
    event = written_and_read(turn_of(released)).event
    assert isinstance(event, LeaseReleased)
    assert [told.request for told in event.uses] == ["r2"]


def test_whose_further_use_lasts_is_veiled_too() -> None:
    lasts = UseLasted(
        listener=WorkerId("w1"),
        request=RequestId("r2"),
        model=ModelId("m"),
        incarnation=Incarnation(7),
        conversation="ada",
        client="10.0.0.7",
    )

    line = LINES.turn(turn_of(lasts))

    assert not any(told in line for told in (b"ada", b"10.0.0.7"))
    event = written_and_read(turn_of(lasts)).event
    assert isinstance(event, UseLasted)
    assert (event.request, event.incarnation) == ("r2", 7)


def test_a_configuration_is_kept_without_its_secrets() -> None:
    spec = secretive_spec()

    lines = (LINES.header(header_of(spec)), LINES.turn(turn_of(ConfigApplied(spec=spec))))

    assert not any(b"hush" in line for line in lines)
    header = read(lines[0])
    assert is_header(lines[0])
    assert not isinstance(header, Turn)
    assert header is not None
    assert header.spec.matrix == spec.matrix
    assert header.spec.models[ModelId("a")].env == ("TOKEN=", "X=")
    turn = read(lines[1])
    assert isinstance(turn, Turn)
    assert turn.event == ConfigApplied(spec=header.spec), "both tell of the same configuration"


def test_a_command_is_told_as_in_the_configuration_and_without_its_secrets() -> None:
    model = secretive_spec().models[ModelId("a")]
    measured = FootprintMeasured(model=model.id, argv=model.argv, peak=MiB(5))
    remember = Remember(
        cause=EventNumber(1),
        model=model.id,
        argv=model.argv,
        peak=MiB(5),
        ram=MiB(0),
        seen_by=SeenBy.TELEMETRY,
    )

    line = LINES.turn(Turn(EventNumber(1), Seconds(1.5), measured, [remember]))

    assert b"hush" not in line
    header, turn = read(LINES.header(header_of(secretive_spec()))), read(line)
    assert isinstance(turn, Turn)
    assert isinstance(header, Header)
    assert isinstance(turn.event, FootprintMeasured)
    assert turn.event.argv == header.spec.models[model.id].argv


def test_a_line_is_one_line_of_json() -> None:
    turn = turn_of(arrival("line\nbreak"))

    line = LINES.turn(turn)

    assert b"\n" not in line
    assert json.loads(line)[:3] == [1, 1.5, "RequestArrived"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[1,2.5,",
        b"[]",
        b"\xff\xfe",
        b'[1,2.5,"Earthquake",{},[]]',
        b'[1,2.5,"RequestArrived",{},[]]',
        b'[1,2.5,"Woke",{},[["Applause",{}]]]',
        b'[1,2.5,"Woke",{},[3]]',
        b'{"journal":1}',
        b'{"journal":99}',
        b"null",
        b"[" * 5000,
    ],
)
def test_a_line_that_says_nothing_is_none(line: bytes) -> None:
    assert read(line) is None


def test_every_event_has_a_name_of_its_own() -> None:
    names = [kind.__name__ for kind in get_args(Event)]

    assert len(set(names)) == len(names)
