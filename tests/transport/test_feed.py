import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from qmsup.ids import Epoch
from qmsup.transport import context
from qmsup.transport.feed import FeedReader, FeedSocket
from qmsup.units import Seconds

_SOON = Seconds(10.0)


@pytest.fixture
def feed(places: Path) -> Iterator[FeedSocket]:
    made = FeedSocket(f"ipc://{places}/feed.sock")
    yield made
    made.close()
    context.destroy()


def _reader(places: Path, feed: FeedSocket, *topics: str) -> FeedReader:
    reader = FeedReader(f"ipc://{places}/feed.sock", topics)
    for _ in range(200):
        feed.look()
        feed.greet()
        if reader.await_greeting(Seconds(0.05)):
            return reader
    raise AssertionError("no greeting")


def test_a_reader_gets_what_it_subscribed_to_once_it_was_greeted(
    places: Path, feed: FeedSocket
) -> None:
    reader = _reader(places, feed, "model.", "vram.")

    feed.publish(Epoch(1), 1, 5.0, "line.chat", {"waiting": 1})
    feed.publish(Epoch(1), 1, 5.0, "model.chat", {"state": "ready"})
    feed.publish(Epoch(1), 1, 6.0, "vram.all", None)

    items = reader.receive(_SOON)
    while len(items) < 2:
        items += reader.receive(_SOON)
    assert [(item.topic, item.body) for item in items] == [
        ("model.chat", {"state": "ready"}),
        ("vram.all", None),
    ]
    reader.close()


def test_what_a_reader_says_beside_takes_no_topic_from_others(
    places: Path, feed: FeedSocket
) -> None:
    reader = _reader(places, feed, "model.", "")
    stranger = context.current().socket(zmq.XSUB)
    stranger.connect(f"ipc://{places}/feed.sock")
    for word in (b"xmodel.", b"", b"\1line."):  # the last one tells that those before have come
        stranger.send(word)

    while "line." not in feed.wanted:
        feed.look()

    assert feed.wanted == {"model.", "", "line."}
    stranger.close(linger=0)
    reader.close()


FORGER = """
    import sys, zmq
    forger = zmq.Context.instance().socket(zmq.XSUB)
    forger.setsockopt(zmq.ONLY_FIRST_SUBSCRIBE, 1)
    forger.connect(sys.argv[1])
    forger.send_multipart([b"x", b"\\0model.", b"\\0"])  # a later part is sent as it is
    forger.send_multipart([b"\\1line."])
    forger.poll(60_000)
"""


def test_nobody_ends_what_another_subscribed_to(places: Path, feed: FeedSocket) -> None:
    reader = _reader(places, feed, "model.", "")
    command = [sys.executable, "-c", textwrap.dedent(FORGER), f"ipc://{places}/feed.sock"]
    with subprocess.Popen(command) as forger:
        while "line." not in feed.wanted:
            feed.look()
        forger.kill()

    assert feed.wanted >= {"model.", ""}
    feed.publish(Epoch(1), 1, 5.0, "model.chat", {})
    assert [item.topic for item in reader.receive(_SOON)] == ["model.chat"]
    reader.close()


def test_a_reader_may_end_its_own_subscription_and_others_keep_theirs(
    places: Path, feed: FeedSocket
) -> None:
    one, other = _reader(places, feed, "model."), _reader(places, feed, "model.")
    plain = context.current().socket(zmq.SUB)
    plain.setsockopt(zmq.SUBSCRIBE, b"line.")
    plain.connect(f"ipc://{places}/feed.sock")
    while feed.wanted != {"model.", "line."}:
        feed.look()

    plain.setsockopt(zmq.UNSUBSCRIBE, b"line.")
    while "line." in feed.wanted:
        feed.look()
    one.close()
    plain.setsockopt(zmq.SUBSCRIBE, b"vram.")
    while "vram." not in feed.wanted:
        feed.look()

    assert feed.wanted == {"model.", "vram."}
    for each in (plain, other):
        each.close()


def test_what_is_too_long_for_a_topic_is_none(places: Path, feed: FeedSocket) -> None:
    plain = context.current().socket(zmq.SUB)
    for topic in (b"x" * 1000, b"line."):
        plain.setsockopt(zmq.SUBSCRIBE, topic)
    plain.connect(f"ipc://{places}/feed.sock")
    while not feed.wanted:
        feed.look()

    assert feed.wanted == {"line."}
    plain.close(linger=0)


def test_who_subscribed_to_what_is_known_until_the_reader_is_gone(
    places: Path, feed: FeedSocket
) -> None:
    assert feed.wanted == frozenset()
    one = _reader(places, feed, "model.")
    other = _reader(places, feed, "model.", "")
    assert feed.wanted == {"model.", ""}

    other.close()
    one.close()

    for _ in range(200):
        feed.look()
        if not feed.wanted:
            break
        time.sleep(0.01)  # the sockets' threads deliver the end in their own time
    assert feed.wanted == frozenset()


def test_nobody_has_to_look_on(feed: FeedSocket) -> None:
    feed.publish(Epoch(1), 1, 5.0, "model.chat", {})
    assert feed.look() is False


def test_a_reader_that_is_not_greeted_waits_no_longer_than_it_said(places: Path) -> None:
    reader = FeedReader(f"ipc://{places}/nobody.sock", ("",))
    assert reader.await_greeting(Seconds(0.05)) is False
    assert reader.receive(Seconds(0.01)) == []
    reader.close()
    context.destroy()


def test_an_address_that_is_none_is_an_error_that_names_it(places: Path) -> None:
    with pytest.raises(OSError, match="nonsense"):
        FeedSocket("nonsense")
    with pytest.raises(OSError, match="nonsense"):
        FeedReader("nonsense", ())
    context.destroy()
