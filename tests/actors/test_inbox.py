import os
import threading
import time

import pykka
import pytest
from pykka._envelope import Envelope
from typing_extensions import override

from qmsup.actors import inbox as inbox_module
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.units import Seconds


def test_a_message_from_another_thread_ends_the_wait() -> None:
    inbox = PollingInbox()
    threading.Timer(0.01, lambda: inbox.put(Envelope("hello"))).start()

    assert inbox.get().message == "hello"
    assert inbox.empty()
    inbox.close()


def test_messages_keep_their_order() -> None:
    inbox = PollingInbox()
    for text in "abc":
        inbox.put(Envelope(text))

    assert [inbox.get().message for _ in range(3)] == ["a", "b", "c"]
    inbox.close()


def test_a_ready_descriptor_becomes_a_message() -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    inbox.watch(reader, lambda: os.read(reader, 10))
    os.write(writer, b"ping")

    assert inbox.get().message == b"ping"
    inbox.forget(reader)
    inbox.forget(reader)
    os.close(reader)
    os.close(writer)
    inbox.close()


def test_a_watch_that_has_nothing_to_say_does_not_end_the_wait() -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    seen: list[bytes] = []
    inbox.watch(reader, lambda: seen.append(os.read(reader, 1)))
    os.write(writer, b"x")
    threading.Timer(0.02, lambda: inbox.put(Envelope("later"))).start()

    assert inbox.get().message == "later"
    assert seen == [b"x"]
    os.close(writer)
    inbox.forget(reader)
    os.close(reader)
    inbox.close()


def test_an_eager_watch_is_read_without_waiting_for_its_descriptor() -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    pending = ["first", "second"]
    inbox.watch(reader, lambda: pending.pop(0) if pending else None, eager=True)

    assert [inbox.get().message, inbox.get().message] == ["first", "second"]
    inbox.forget(reader)
    os.close(reader)
    os.close(writer)
    inbox.close()


def test_the_deadline_is_delivered_once_and_not_early() -> None:
    inbox = PollingInbox()
    at = Seconds(time.monotonic() + 0.03)
    inbox.wake_at(at)

    assert isinstance(inbox.get().message, TimeIsUp)
    assert time.monotonic() >= at
    inbox.put(Envelope("next"))
    assert inbox.get().message == "next"
    inbox.close()


def test_no_source_starves_another() -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    os.write(writer, b"x")
    inbox.watch(reader, lambda: "descriptor")
    loud, other = os.pipe()
    inbox.watch(loud, lambda: "eager", eager=True)
    seen = set()
    for _ in range(40):
        inbox.put(Envelope("message"))
        inbox.wake_at(Seconds(0.0))
        message = inbox.get().message
        seen.add(message if isinstance(message, str) else "clock")

    assert seen == {"descriptor", "eager", "message", "clock"}
    inbox.close()
    for fd in (reader, writer, loud, other):
        os.close(fd)


def test_a_message_put_while_the_inbox_looks_around_is_not_slept_over() -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    late = ["from another thread"]
    # Between the look for messages and the look at descriptors, which takes the nudge of this one with it.
    inbox.watch(reader, lambda: inbox.put(Envelope(late.pop())) if late else None, eager=True)
    rescue = threading.Timer(5, lambda: inbox.put(Envelope("rescue")))
    rescue.start()
    began = time.monotonic()

    assert inbox.get().message == "from another thread"
    assert time.monotonic() - began < 4, "it was found only when the next message came"
    rescue.cancel()
    rescue.join()
    inbox.forget(reader)
    os.close(reader)
    os.close(writer)
    inbox.close()


def test_a_closed_inbox_still_gives_what_was_put() -> None:
    inbox = PollingInbox()
    inbox.put(Envelope("before"))
    inbox.close()
    inbox.put(Envelope("after"))

    assert [inbox.get().message, inbox.get().message] == ["before", "after"]
    assert inbox.empty()


class _Echo(pykka.ThreadingActor):
    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_receive(self, message: object) -> object:
        return message


def test_pykka_runs_an_actor_on_it() -> None:
    ref = _Echo.start()

    assert ref.ask("hello", timeout=5) == "hello"
    ref.stop()


def test_who_was_frozen_hears_what_was_said_meanwhile_before_its_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inbox = PollingInbox()
    clock = time.monotonic
    inbox.wake_at(Seconds(clock() + 0.05))
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 60.0)
    late = [threading.Timer(pause, lambda: inbox.put(Envelope("said"))) for pause in (0.0, 0.05)]
    for timer in late:
        timer.start()

    assert [inbox.get().message for _ in late] == ["said", "said"]
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 60.0 + inbox_module._HEARS_FOR)
    assert inbox.get().message == TimeIsUp()
    inbox.wake_at(Seconds(time.monotonic()))
    assert inbox.get().message == TimeIsUp()
    inbox.close()
    for timer in late:
        timer.join()


def test_a_deadline_that_comes_while_nobody_says_anything_is_kept() -> None:
    inbox = PollingInbox()
    inbox.wake_at(Seconds(time.monotonic() + 0.05))

    assert inbox.get().message == TimeIsUp()
    inbox.close()


@pytest.mark.parametrize("is_eager", [True, False])
def test_what_a_watch_raises_is_raised_where_pykka_looks_after_it(*, is_eager: bool) -> None:
    inbox = PollingInbox()
    reader, writer = os.pipe()
    inbox.watch(reader, lambda: 1 / 0, eager=is_eager)
    os.write(writer, b"x")

    envelope = inbox.get()

    assert envelope.reply_to is None
    with pytest.raises(ZeroDivisionError):
        _ = envelope.message
    inbox.forget(reader)
    for end in (reader, writer):
        os.close(end)
    inbox.close()
