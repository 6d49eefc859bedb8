"""Messages of the feed: what changed, for whoever wants to look on (PROTOCOL.md). Two frames each: a topic, and JSON.

Delivery may lose messages, to a reader that is slow or late. The numbers tell: whoever misses one asks for the state
again (`subscribe`), which says which numbers it goes up to.
"""

from typing import Any

import msgspec

from qmsup.errors import PeerError
from qmsup.ids import Epoch

VERSION = 1

HELLO = "hello."
"""A topic that a reader makes up under this prefix is answered once its subscriptions are in force."""

KINDS = ("model", "line", "vram", "lease", "decision", "activity")
"""What a topic begins with, up to its first dot."""

TOLD_EACH = frozenset({"decision", "activity"})
"""Kinds that tell of what happened, and have no state."""


class Item(msgspec.Struct, kw_only=True, frozen=True):
    """One message. `{"v": 1, "epoch": 3, "seq": 17, "time": 1700000000.5, "topic": "model.chat", "body": {…}}`.

    Attributes:
        epoch: of the scheduler; another one numbers anew.
        seq: one more than that of the message before of its kind, which is the topic up to its first dot.
        time: in Unix seconds.
        body: null = there is no such thing any more.
    """

    v: int = VERSION
    epoch: Epoch = Epoch(0)
    seq: int = 0
    time: float = 0.0
    topic: str = ""
    body: Any = None


def kind_of(topic: str) -> str:
    """What a topic tells of."""
    return topic.partition(".")[0]


_writer = msgspec.json.Encoder()
_reader = msgspec.json.Decoder(Item)


def encode(item: Item) -> tuple[bytes, bytes]:
    """An item as its two frames."""
    return item.topic.encode(), _writer.encode(item)


def decode(frames: list[bytes]) -> Item:
    """Read a message of the feed.

    Raises:
        PeerError: it is none, or of another version.
    """
    try:
        _, text = frames
        item = _reader.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise PeerError("the feed sent what is no message of it") from e
    if item.v != VERSION:
        raise PeerError(
            f"the feed speaks version {item.v} and this program version {VERSION}:"
            " install the same qmsup on both sides"
        )
    return item
