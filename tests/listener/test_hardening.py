"""What a browser is told of our own answers."""

import pytest

from qmsup.listener.hardening import SAFE_HEADERS
from qmsup.listener.relay.order import RelayOrder
from tests.support.listener_app import app_of, call, environ_of


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models", "/favicon.ico"])
def test_a_page_runs_nothing_and_stands_in_no_frame(path: str) -> None:
    answer = call(app_of(), environ_of("GET", path))

    assert not isinstance(answer, RelayOrder)
    assert SAFE_HEADERS
    for name, value in SAFE_HEADERS:
        assert answer.headers[name] == value


def test_an_error_is_not_taken_for_a_page() -> None:
    answer = call(app_of(), environ_of("GET", "/<script>"))

    assert not isinstance(answer, RelayOrder)
    assert (answer.status, answer.headers["X-Content-Type-Options"]) == (404, "nosniff")
