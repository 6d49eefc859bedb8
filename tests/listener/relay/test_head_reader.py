import pytest

from qmsup.listener.relay.framing import FramingError
from qmsup.listener.relay.head_reader import HeadReader
from tests.support.upstreams import plain

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_head_is_read_however_it_comes_with_what_comes_before_and_behind_it(step: int) -> None:
    reader = HeadReader("POST", upgrades=False)
    answer = HINTS + HINTS + plain(b"hello")
    interim = 0

    for at in range(0, len(answer), step):
        heads, head, rest = reader.feed(answer[at : at + step])
        interim += len(heads)
        if head is not None:
            assert head.lines.status == 200
            assert b"hello".startswith(rest)
            break
    else:
        pytest.fail("no head")
    assert interim == 2


def test_interim_answers_without_end_are_no_answer() -> None:
    reader = HeadReader("POST", upgrades=False)

    with pytest.raises(FramingError, match="without end"):
        _feed_without_end(reader)


def _feed_without_end(reader: HeadReader) -> None:
    for _ in range(100_000):
        reader.feed(HINTS)


def test_a_tunnel_is_read_as_one_only_where_it_was_asked_for() -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nfirst"

    _, head, rest = HeadReader("GET", upgrades=True).feed(switch)
    assert head is not None
    assert (head.lines.status, rest) == (101, b"first")
    with pytest.raises(FramingError):
        HeadReader("GET", upgrades=False).feed(switch)
