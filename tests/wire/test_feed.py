import pytest

from qmsup.errors import PeerError
from qmsup.ids import Epoch
from qmsup.wire import feed
from qmsup.wire.feed import Item


def test_an_item_comes_back_from_its_two_frames() -> None:
    item = Item(epoch=Epoch(3), seq=17, time=5.5, topic="model.a.b", body={"state": "ready"})

    topic, text = feed.encode(item)

    assert topic == b"model.a.b"
    assert feed.decode([topic, text]) == item
    assert feed.kind_of(item.topic) == "model"


@pytest.mark.parametrize(
    "frames", [[], [b"t"], [b"t", b"no json"], [b"t", b"{}", b""], [b"t", b"[1]"]]
)
def test_what_is_no_item_is_an_error(frames: list[bytes]) -> None:
    with pytest.raises(PeerError, match="no message"):
        feed.decode(frames)


def test_another_version_is_refused_in_words() -> None:
    with pytest.raises(PeerError, match=r"version 2 .*version 1"):
        feed.decode([b"t", b'{"v": 2}'])
