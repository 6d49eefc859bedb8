"""What is told of requests that never come to the scheduler."""

import io

import pytest

from qmsup.listener.refused import TRIAL
from tests.support.listener_app import (
    CHAT,
    LOCKED,
    MAIN,
    Answer,
    StandInLink,
    app_of,
    call,
    environ_of,
)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b'{"model": "no-such"}', 404), (b'{"model": ', 400), (b"{}", 400)],
)
def test_a_refused_request_for_a_model_is_told_of(body: bytes, status: int) -> None:
    link = StandInLink()

    answer = call(app_of(MAIN, link), environ_of("POST", CHAT, body))

    assert isinstance(answer, Answer)
    (told,) = link.told
    assert (told.status, told.outcome, told.path) == (status, "failed", CHAT)
    assert told.request == answer.headers["X-QM-Request-Id"]
    assert told.model == ""


def test_neither_the_model_that_was_meant_nor_the_key_is_told() -> None:
    link = StandInLink()
    headers = {"Authorization": "Bearer sk-wrong"}

    call(app_of(LOCKED, link), environ_of("POST", CHAT, b'{"model": "no-such"}', headers))

    (told,) = link.told
    assert told.status == 401
    assert "no-such" not in str(told)
    assert "sk-" not in str(told)


def test_a_page_that_is_not_there_is_no_request_for_a_model() -> None:
    link = StandInLink()

    for method, path in (("GET", "/nothing"), ("GET", "/v1/models/no-such"), ("POST", "/nothing")):
        call(app_of(MAIN, link), environ_of(method, path))

    assert link.told == []


@pytest.mark.parametrize(
    ("path", "status"),
    [("/upstream/no-such/props", 404), ("/route/no-such/props", 404), ("/slots", 400)],
)
def test_one_that_names_its_model_elsewhere_is(path: str, status: int) -> None:
    link = StandInLink()

    call(app_of(MAIN, link), environ_of("GET", path))

    assert [told.status for told in link.told] == [status]


def test_a_refusal_that_is_not_used_is_not_told_of_twice() -> None:
    link = StandInLink()
    environ = environ_of("POST", CHAT, b"{}")

    call(app_of(MAIN, link), {**environ, TRIAL: True})
    call(app_of(MAIN, link), {**environ, "wsgi.input": io.BytesIO(b"{}")})

    assert len(link.told) == 1
