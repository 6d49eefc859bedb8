from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.listener.activity import Activity
from qmsup.wire import codec, listening
from qmsup.wire.listening import Finished


def finished(number: int) -> Finished:
    return Finished(
        request=RequestId(f"q-{number}"), model=ModelId("m"), time=1.5, ms=2, outcome="finished"
    )


def told(frames: list[bytes]) -> list[list[Finished]]:
    messages = [codec.decode_from_worker(frame) for frame in frames]
    assert all(isinstance(m, listening.Activity) and m.listener == "main" for m in messages)
    return [
        list(codec.decode_requests(m.requests))
        for m in messages
        if isinstance(m, listening.Activity)
    ]


def test_what_was_added_is_told_once_and_in_order() -> None:
    activity = Activity(ListenerName("main"))
    rows = [finished(number) for number in range(3)]
    for row in rows:
        activity.add(row)

    assert told(list(activity.take())) == [rows]
    assert list(activity.take()) == []


def test_no_message_is_long() -> None:
    activity = Activity(ListenerName("main"))
    for number in range(300):
        activity.add(finished(number))

    assert [len(rows) for rows in told(list(activity.take()))] == [128, 128, 44]


def test_nobody_to_tell_costs_no_memory_without_end() -> None:
    activity = Activity(ListenerName("main"))
    for number in range(30_000):
        activity.add(finished(number))

    rows = [row for message in told(list(activity.take())) for row in message]
    assert len(rows) == 20_000
    assert rows[-1].request == "q-29999"
