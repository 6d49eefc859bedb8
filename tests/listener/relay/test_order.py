"""How a request is addressed to a server on another machine."""

import pytest

from qmsup.ids import HostName
from qmsup.listener.relay.order import Remote

_HEAD = b"POST /v1/chat?a=/b HTTP/1.1\r\nAccept: */*\r\n"
_KEY = b"Authorization: Bearer k\r\n"

ADDRESSED = [
    (b"", b"", _HEAD),
    (b"", _KEY, _HEAD + _KEY),
    (b"/api", _KEY, b"POST /api/v1/chat?a=/b HTTP/1.1\r\nAccept: */*\r\n" + _KEY),
]


@pytest.mark.parametrize(("path", "lines", "sent"), ADDRESSED)
def test_its_path_goes_before_and_its_key_with_the_others(
    path: bytes, lines: bytes, sent: bytes
) -> None:
    remote = Remote(name=HostName("far"), upstream="far:80", path=path, lines=lines)

    assert remote.addressed(_HEAD) == sent
