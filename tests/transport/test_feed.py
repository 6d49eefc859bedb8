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
