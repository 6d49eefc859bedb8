"""Leases and reloads over HTTP: whose business they are, and what a body must be."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from qmsup.ids import ListenerName
from tests.support.listener_app import (
    AGENTS,
    LOCKED,
    MAIN,
    Answer,
    StandInLink,
    app_of,
    call,
    environ_of,
)

HERE = {"REMOTE_ADDR": "127.0.0.1"}
KEY = {"Authorization": "Bearer sk-first"}
LEASE = {"model": "gpt-4o-mini", "ttl_s": 60, "purpose": "nightly", "owner": "me"}


def post(
    path: str,
    body: object = LEASE,
    *,
    link: StandInLink | None = None,
    listener: ListenerName = MAIN,
    headers: dict[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    environ: dict[str, Any] = {**environ_of("POST", path, data, headers), **HERE, **(more or {})}
    answer = call(app_of(listener, link), environ)
    assert isinstance(answer, Answer)
    return answer


def test_a_lease_is_asked_for_by_the_model_s_id() -> None:
    link = StandInLink(answers={"lease": {"lease": "job-1"}})

    answer = post("/api/leases", link=link)

    assert (answer.status, json.loads(answer.body)) == (200, {"lease": "job-1"})
    args = {"model": "chat", "ttl_s": 60.0, "purpose": "nightly", "owner": "me"}
    assert link.asked == [("lease", args)]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_request"),
        (b"[]", 400, "bad_request"),
        (b"{", 400, "bad_request"),
        (b"[" * 10_000, 400, "bad_request"),
        ({**LEASE, "ttl_s": "60"}, 400, "bad_request"),
        (b'{"model": "chat", "ttl_s": NaN}', 400, "bad_request"),
        (b'{"model": "\xff"}', 400, "bad_request"),
        ({"ttl_s": 60}, 400, "model_missing"),
        ({**LEASE, "model": "nobody"}, 404, "model_not_found"),
        (b" " * 70_000, 413, "body_too_large"),
    ],
)
def test_a_wrong_body_is_refused_and_nobody_is_asked(body: object, status: int, code: str) -> None:
    link = StandInLink()

    answer = post("/api/leases", body, link=link)

    assert (answer.status, answer.code) == (status, code)
    assert link.asked == []


def test_the_leases_are_those_of_this_port() -> None:
    leases = [{"lease": "1", "model": "chat"}, {"lease": "2", "model": "coder"}]
    link = StandInLink(answers={"leases": {"leases": leases}})

    answer = call(app_of(AGENTS, link), environ_of("GET", "/api/leases"))

    assert isinstance(answer, Answer)
    assert json.loads(answer.body) == {"leases": leases[1:]}


def test_a_reload_tells_what_the_scheduler_tells() -> None:
    link = StandInLink(answers={"reload": {"text": "reloaded: nothing changed"}})

    answer = post("/api/reload", b"", link=link)

    assert json.loads(answer.body) == {"text": "reloaded: nothing changed"}


@pytest.mark.parametrize("path", ["/api/leases", "/api/reload"])
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"REMOTE_ADDR": "::1"}, 200),
        ({"HTTP_ORIGIN": "http://127.0.0.1:8080"}, 200),
        ({"REMOTE_ADDR": "192.0.2.7"}, 401),
        ({"REMOTE_ADDR": ""}, 401),
        ({"HTTP_X_FORWARDED_FOR": "192.0.2.7"}, 401),
        ({"HTTP_FORWARDED": "for=192.0.2.7"}, 401),
        ({"HTTP_ORIGIN": "http://evil.example"}, 401),
        ({"HTTP_ORIGIN": "null"}, 401),
    ],
)
def test_without_keys_only_programs_of_this_machine_may(
    path: str, more: dict[str, str], status: int
) -> None:
    link = StandInLink()

    assert post(path, link=link, more=more).status == status
    assert bool(link.asked) == (status == 200)


@pytest.mark.parametrize("path", ["/api/leases", "/api/reload"])
def test_who_has_a_key_may_from_everywhere(path: str) -> None:
    elsewhere = {"REMOTE_ADDR": "192.0.2.7", "HTTP_ORIGIN": "http://some.example"}

    assert post(path, listener=LOCKED).status == 401
    assert post(path, listener=LOCKED, headers=KEY, more=elsewhere).status == 200
