import resource
from collections.abc import Iterator

import pytest

from qmsup.errors import RequestError
from qmsup.listener.spool import SPOOL_ABOVE, Spool


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may be larger than two bodies that are just kept in memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * SPOOL_ABOVE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_is_small_stays_in_memory() -> None:
    spool = Spool()
    spool.add(b"ab")
    spool.add(b"x" * (SPOOL_ABOVE - 2))

    content = spool.content()

    assert content == b"ab" + b"x" * (SPOOL_ABOVE - 2)
    assert spool.length == SPOOL_ABOVE
    spool.close()


def test_what_is_large_is_in_a_file_at_its_start_that_closing_gives_back() -> None:
    spool = Spool()
    pieces = [b"ab", b"x" * SPOOL_ABOVE, b"cd"]
    for piece in pieces:
        spool.add(piece)

    content = spool.content()

    assert not isinstance(content, bytes)
    assert content.read() == b"".join(pieces)
    spool.close()
    assert content.closed


@pytest.mark.usefixtures("little_room")
def test_where_there_is_no_room_the_client_is_told_and_so_is_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spool = Spool()
    spool.add(b"x" * SPOOL_ABOVE)

    with pytest.raises(RequestError, match=r"no room .* TMPDIR") as refused:
        spool.add(b"x" * (2 * SPOOL_ABOVE))

    assert refused.value.refusal.code == "internal_error"
    assert "body.no_room" in caplog.text
    spool.close()
