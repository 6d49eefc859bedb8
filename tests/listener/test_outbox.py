from qmsup.listener.outbox import Outbox


def test_what_is_to_be_said_at_once_is_not_kept_back() -> None:
    outbox = Outbox()
    outbox.add(b"ask")

    assert outbox.kept_until(0.0) is None
    assert outbox.take(0.0) == [b"ask"]
    assert not outbox


def test_what_may_wait_is_kept_back_where_messages_follow_each_other() -> None:
    outbox = Outbox()
    outbox.take(10.0)
    outbox.add_in_time([b"done", b"beat"])

    until = outbox.kept_until(10.0)
    assert until is not None
    assert outbox.kept_until(until) is None
    assert outbox.take(until) == [b"done", b"beat"]


def test_it_waits_no_longer_once_somebody_waits_for_it() -> None:
    outbox = Outbox()
    outbox.take(10.0)
    outbox.add_in_time([b"done"])
    outbox.hurry()

    assert outbox.kept_until(10.0) is None
    outbox.take(10.0)
    outbox.add_in_time([b"done"])
    assert outbox.kept_until(10.0) is not None, "the next message is in no hurry"
