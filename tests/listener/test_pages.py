"""The line and the explanations, as a port shows them: about its own models only."""

from typing import TYPE_CHECKING, cast

import pytest
from werkzeug.test import Client

from qmsup.ids import ListenerName
from tests.support.listener_app import AGENTS, LOCKED, MAIN, StandInLink, app_of

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

QUEUE: dict[str, list[dict[str, object]]] = {
    "queue": [
        {"position": 1, "request": "q-1", "model": "chat"},
        {"position": 2, "request": "q-2", "model": "coder"},
        {"position": 3, "request": None, "model": "gone"},
    ],
    "loading": [{"model": "chat", "waiting": 1}],
}


def _client(link: StandInLink, listener: ListenerName = MAIN) -> Client:
    # Ordinary answers only: it is a plain WSGI app then.
    return Client(cast("WSGIApplication", app_of(listener, link)))


def test_the_queue_shows_this_ports_models_at_their_places_in_the_whole_line() -> None:
    link = StandInLink(answers={"queue": QUEUE})

    assert _client(link).get("/api/queue").get_json() == {
        "queue": QUEUE["queue"][:2],
        "loading": QUEUE["loading"],
    }
    assert _client(link, AGENTS).get("/api/queue").get_json() == {
        "queue": QUEUE["queue"][1:2],
        "loading": [],
    }
    assert _client(StandInLink(answers={"queue": "odd"})).get("/api/queue").get_json() == {}


def test_a_model_is_explained_by_any_of_its_names() -> None:
    link = StandInLink(answers={"explain": {"model": "chat", "now": ["chat is ready"]}})

    told = _client(link).get("/api/explain/gpt-4o-mini").get_json()

    assert told["now"] == ["chat is ready"]
    assert link.asked == [("explain", {"model": "chat"})]
    assert _client(link).get("/api/explain/org/deep/model").status_code == 200
    assert _client(link, AGENTS).get("/api/explain/chat").status_code == 404


def test_both_want_the_key_and_are_only_read() -> None:
    link = StandInLink()

    for path in ("/api/queue", "/api/explain/chat"):
        assert _client(link, LOCKED).get(path).status_code == 401
        assert _client(link).post(path).status_code == 405
    assert link.asked == []


PAGES_OF_SEVERAL = ("/running", "/api/queue", "/api/leases", "/logs", "/logs/stream", "/api/events")


@pytest.mark.parametrize("path", PAGES_OF_SEVERAL)
def test_a_page_of_several_models_refuses_the_name_of_one_that_is_not_there(path: str) -> None:
    link = StandInLink()

    refused = _client(link).get(f"{path}?model=cha")
    hidden = _client(link, AGENTS).get(f"{path}?model=chat")

    assert (refused.status_code, hidden.status_code) == (404, 404)
    assert (
        refused.get_json()["error"]["message"] == "this port has no model 'cha'; did you mean chat?"
    )
    assert link.asked == []


def test_a_page_of_several_models_is_about_the_one_that_is_named() -> None:
    entries = [{"model": "chat"}, {"model": "coder"}]
    answers = {"queue": QUEUE, "running": {"running": entries}, "leases": {"leases": entries}}
    client = _client(StandInLink(answers=dict(answers)))

    assert client.get("/running?model=gpt-4o-mini").get_json() == {"running": entries[:1]}
    assert client.get("/api/leases?model=coder").get_json() == {"leases": entries[1:]}
    assert client.get("/api/queue?model=coder").get_json() == {
        "queue": QUEUE["queue"][1:2],
        "loading": [],
    }


def test_to_unload_all_unloads_one_where_it_is_named() -> None:
    link = StandInLink()

    def status(method: str, target: str) -> int:
        environ = {"REMOTE_ADDR": "127.0.0.1"}
        return _client(link).open(target, method=method, environ_overrides=environ).status_code

    assert status("POST", "/api/models/unload?model=gpt-4o-mini") == 200
    assert status("GET", "/unload?model=coder") == 200
    assert status("POST", "/api/models/unload?model=cha") == 404
    assert status("GET", "/unload?model=cha") == 404

    assert link.asked == [("unload", {"models": ["chat"]}), ("unload", {"models": ["coder"]})]


def test_metrics_are_shown_as_the_scheduler_tells_them() -> None:
    link = StandInLink(answers={"metrics": {"text": "qmsup_line_length 0.0\n"}})

    answer = _client(link).get("/metrics")

    assert answer.text == "qmsup_line_length 0.0\n"
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert _client(link, LOCKED).get("/metrics").status_code == 401
    assert link.asked == [("metrics", {})]


def test_of_metrics_a_port_and_a_key_show_what_they_are_about() -> None:
    text = "".join(
        f'qmsup_requests_total{{model="{model}",listener="{listener}"}} 1.0\n'
        for model in ("chat", "coder", "gone")
        for listener in ("main", "agents", "locked")
    )
    link = StandInLink(answers={"metrics": {"text": text}})

    def shown(listener: ListenerName, key: str = "") -> list[str]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        told = _client(link, listener).get("/metrics", headers=headers).text
        return [line.split('"')[1] + "@" + line.split('"')[3] for line in told.splitlines()]

    assert len(shown(MAIN)) == 9
    assert shown(AGENTS) == ["coder@agents"]
    assert len(shown(LOCKED, "sk-first")) == 9
    assert shown(LOCKED, "sk-scoped") == ["chat@locked"]
