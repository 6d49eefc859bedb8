"""Routes over two machines, as a client sees them."""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.box import Box, fake, real, serving, until
from tests.support.hosts import FakeHost, fake_host

pytestmark = pytest.mark.system

_SLOTS = {"parallel": 2, "queueMax": 2}
_ROUTES = {
    "convo": {"hosts": ["a", "b"], "default_model": "chat"},
    "agent-*": {
        "hosts": ["a", "b"],
        "default_model": "chat",
        "affinity": "route",
        "queue": False,
    },
    "home": {"hosts": ["local"], "default_model": "here"},
    "pinned": {"hosts": ["local"], "default_model": "small", "queue": False},
    "only-b": {"hosts": ["b"], "default_model": "chat"},
}


@contextmanager
def _box(*hosts: FakeHost, routes: Mapping[str, Any] = _ROUTES, **keys: Any) -> Iterator[Box]:
    entries = {h.name: {"url": h.url, "models": {"chat": _SLOTS}} for h in hosts}
    small = real("alpha", concurrencyLimit=1)
    models = {"here": fake("--name here"), "small": small}
    with serving(models, hosts=entries, routes=routes, **keys) as box:
        until(
            lambda: all(h["healthy"] for h in box.told("hosts")["hosts"]), what="hosts are healthy"
        )
        yield box


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[FakeHost, FakeHost]]:
    with (
        fake_host("a", "--ctx 2000 --first-byte-seconds 0.3") as a,
        fake_host("b", "--ctx 2000 --first-byte-seconds 0.3") as b,
    ):
        yield a, b


@pytest.fixture(scope="module")
def box(hosts: tuple[FakeHost, FakeHost]) -> Iterator[Box]:
    with _box(*hosts) as box:
        yield box


def _ask(
    box: Box, route: str, said: str = "hi", path: str = "/v1/chat/completions", **more: Any
) -> requests.Response:
    headers = more.pop("headers", {})
    body = {"messages": [{"role": "user", "content": said}], "max_tokens": 1, **more}
    return requests.post(box.url(f"/route/{route}{path}"), json=body, headers=headers, timeout=30)


def _host(answer: requests.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.headers["X-QM-Host"]


def _counts(box: Box) -> tuple[int, int]:
    """How many requests the first host has, and how many wait for it."""
    model = box.told("hosts")["hosts"][0]["models"][0]
    return model["inflight"], model["queued"]


def test_the_turns_of_a_conversation_stay_on_one_host_and_others_spread(box: Box) -> None:
    first = {said: _host(_ask(box, "convo", said)) for said in map("talk {}".format, range(4))}

    for said, host in first.items():
        answer = _ask(box, "convo", said)
        assert _host(answer) == host
        assert answer.json()["model"] == host  # the fake's name
    header = {"X-Session-ID": "s-1"}
    assert len({_host(_ask(box, "convo", f"{n}", headers=header)) for n in range(4)}) == 1


def test_a_route_may_be_named_by_a_header(box: Box) -> None:
    answer = requests.post(
        box.url("/v1/chat/completions"),
        json={"model": "chat", "messages": []},
        headers={"X-QM-Route": "only-b"},
        timeout=30,
    )

    assert _host(answer) == "b"


def test_slots_are_kept_to_the_lines_end_is_refused_and_streams_pass() -> None:
    with (
        fake_host("b", "--events 4 --event-interval 0.2") as b,
        _box(b, routes={"only-b": _ROUTES["only-b"]}) as box,
    ):

        def stream(number: int) -> tuple[int, str]:
            answer = _ask(box, "only-b", f"n {number}", stream=True, max_tokens=4)
            return answer.status_code, answer.text

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(stream, range(6)))
        stats = b.stats()

    outcomes = Counter(status for status, _ in answers)
    assert outcomes == {200: 4, 429: 2}
    assert all("[DONE]" in text for status, text in answers if status == 200)
    assert all("queue_full" in text for status, text in answers if status == 429)
    assert stats["requests"] == 4
    assert stats["most_open"] <= 2 + 1  # and the one that asks how it is


def test_control_calls_follow_the_chat_and_take_no_slot(box: Box) -> None:
    chat = _host(_ask(box, "agent-1", "x"))

    seen = requests.get(box.url("/route/agent-1/props"), timeout=30)
    echoed = requests.get(box.url("/route/agent-1/echo?a=%2F"), timeout=30)

    assert _host(seen) == _host(echoed) == chat
    assert echoed.json()["target"] == "/echo?a=%2F"
    other = requests.get(box.url("/route/agent-1/nothing"), timeout=30)
    assert (other.status_code, other.headers["X-QM-Host"]) == (404, chat)


def test_requests_that_do_not_queue_pass_the_limit(box: Box) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: _ask(box, "agent-2", f"{n}"), range(8)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({_host(answer) for answer in answers}) == 1


def test_on_this_box_as_well_a_look_loads_nothing_and_what_does_not_queue_passes_the_limit(
    box: Box,
) -> None:
    looked = requests.get(box.url("/route/pinned/slots"), timeout=30)
    assert (looked.status_code, looked.json()["error"]["code"]) == (503, "model_not_loaded")
    assert box.states()["small"] == "stopped"

    counted = requests.post(box.url("/route/pinned/tokenize"), json={"content": "a"}, timeout=30)
    assert counted.status_code == 200, counted.text
    assert requests.get(box.url("/route/pinned/slots"), timeout=30).status_code == 200

    with ThreadPoolExecutor(3) as pool:
        streams = [
            pool.submit(_ask, box, "pinned", f"{n}", stream=True, max_tokens=900) for n in range(3)
        ]
        answers = [stream.result(60) for stream in streams]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert {answer.headers["X-QM-Wait-Ms"] for answer in answers} == {"0"}
    too_long = _ask(box, "pinned", "x " * 3000)  # so it seems, and so the model's server counts
    error = too_long.json()["error"]
    assert (too_long.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "the prompt has 600" in error["message"]


def test_this_box_is_a_host_like_others(box: Box) -> None:
    answer = _ask(box, "home")

    assert _host(answer) == "local"
    assert answer.json()["model"] == "here"
    this_box = box.told("hosts")["hosts"][-1]
    assert (this_box["name"], "here" in this_box["loaded"]) == ("local", True)
    assert "local" in box.run("hosts").stdout


REFUSED = {
    "a prompt that fits no slot": ("convo", "x " * 8000, 400, "context_length_exceeded"),
    "no such route": ("convoy", "hi", 404, "route_not_found"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(box: Box, case: str) -> None:
    route, said, status, code = REFUSED[case]

    answer = _ask(box, route, said)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_drained_host_takes_nothing_new(box: Box) -> None:
    assert box.run("drain", "a").returncode == 0
    try:
        assert {_host(_ask(box, "convo", f"while {n}")) for n in range(3)} == {"b"}
        told = {h["name"]: h for h in box.told("hosts")["hosts"]}
        assert [*told] == ["a", "b", "local"]
        assert (told["a"]["draining"], told["b"]["draining"]) == (True, False)
        assert "draining" in box.run("hosts").stdout
    finally:
        assert box.run("undrain", "a").returncode == 0
    assert not any(h["draining"] for h in box.told("hosts")["hosts"])


def test_a_host_that_dies_loses_its_conversations_to_others_and_none_is_left_at_the_end() -> None:
    with fake_host("a") as a, fake_host("b") as b, _box(a, b) as box:
        mine = next(s for s in map("m {}".format, range(20)) if _host(_ask(box, "convo", s)) == "a")
        a.end()

        # Nobody has looked meanwhile: it is found out with this very request.
        assert _host(_ask(box, "convo", mine)) == "b"
        assert _host(_ask(box, "convo", mine)) == "b"
        b.end()
        answer = _ask(box, "convo", mine)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_host")
        with fake_host("a", port=a.port):
            until(lambda: _ask(box, "convo", mine).status_code == 200, what="it is back")


def test_a_stream_that_breaks_is_not_begun_again_elsewhere() -> None:
    flags = "--die-after-requests 1 --events 3"
    with fake_host("a", flags) as a, fake_host("b", flags) as b, _box(a, b) as box:
        with requests.post(
            box.url("/route/convo/v1/chat/completions"),
            json={"messages": [], "stream": True},
            stream=True,
            timeout=30,
        ) as answer:
            heard = b""
            with suppress(requests.exceptions.ChunkedEncodingError):
                for piece in answer.iter_content(None):
                    heard += piece

        assert b"upstream_failed" in heard
        assert b"[DONE]" not in heard
        dead = until(lambda: [host for host in (a, b) if host.process.poll() is not None])
        assert [host.stats()["requests"] for host in (a, b) if host not in dead] == [0]


def test_a_client_that_leaves_gives_its_slot_and_its_place_back() -> None:
    routes = {"only-b": _ROUTES["only-b"]}
    with fake_host("b", "--first-byte-seconds 0.5") as b, _box(b, routes=routes) as box:

        def leave_early() -> None:
            with pytest.raises(requests.Timeout):
                requests.post(
                    box.url("/route/only-b/v1/chat/completions"),
                    json={"messages": []},
                    timeout=0.2,
                )

        threads = [threading.Thread(target=leave_early) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)

        until(lambda: _counts(box) == (0, 0), what="nothing in flight")
        assert _host(_ask(box, "only-b")) == "b"


def test_peers_serve_a_route_whose_hosts_are_all_gone() -> None:
    route = {"hosts": ["a"], "default_model": "chat", "peers": ["far"]}
    with fake_host("a") as a, fake_host("far") as far:
        peers = {"far": {"proxy": far.url, "apiKey": "sk", "models": ["chat", "big"]}}
        with _box(a, routes={"convo": route}, peers=peers) as box:
            assert _host(_ask(box, "convo")) == "a"
            a.end()
            assert _host(_ask(box, "convo")) == "far"
            direct = box.chat("big", stream=True)
            assert _host(direct) == "far"
            assert "[DONE]" in direct.text


def test_a_killed_scheduler_loses_no_stream_no_place_and_no_count(enough: Path) -> None:
    routes = {"only-b": _ROUTES["only-b"]}
    flags = f"--event-interval 0.1 --until {enough}"
    with fake_host("b", flags) as b, _box(b, routes=routes) as box:

        def stream(number: int) -> str:
            return _ask(box, "only-b", f"n {number}", stream=True, max_tokens=10_000).text

        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(stream, number) for number in range(3)]
            until(lambda: _counts(box) == (2, 1), what="two are served, one waits")
            box.kill_scheduler()
            until(lambda: _counts(box) == (2, 1), what="it knows them all")
            enough.touch()
            texts = [answer.result(60) for answer in answers]

        assert all("[DONE]" in text for text in texts)
        assert b.stats()["requests"] == 3
        until(lambda: _counts(box) == (0, 0), what="nothing in flight")


def test_another_qmsup_is_a_host_that_loads_what_it_is_asked_for() -> None:
    routes = {"there": {"hosts": ["other"], "default_model": "alpha"}}
    key = "sk-of-the-other"
    with serving({"alpha": fake("--name alpha")}, apiKeys=[key]) as other:
        slots = {"parallel": 4, "queueMax": 4}
        hosts = {"other": {"url": other.url(), "apiKey": key, "models": {"alpha": slots}}}
        with serving({"here": fake()}, hosts=hosts, routes=routes) as box:
            answer = _ask(box, "there", stream=True)

            assert _host(answer) == "other"
            assert answer.headers["X-QM-Model"] == "alpha"
            assert "[DONE]" in answer.text
            seen = until(lambda: box.told("hosts")["hosts"][0]["loaded"], what="it is seen loaded")
            assert (seen, box.told("hosts")["hosts"][0]["kind"]) == (["alpha"], "qmsup")


def test_hosts_and_routes_come_and_go_with_the_configuration() -> None:
    with (
        fake_host("a") as a,
        fake_host("b") as b,
        _box(a, routes={"convo": {"hosts": ["a"], "default_model": "chat"}}) as box,
    ):
        assert _host(_ask(box, "convo")) == "a"
        path = box.folder / "config.yaml"
        config = json.loads(path.read_text())
        config["hosts"] = {"b": {"url": b.url, "models": {"chat": _SLOTS}}}
        config["routes"] = {"other": {"hosts": ["b"], "default_model": "chat"}}
        path.write_text(json.dumps(config))

        told = box.run("reload")

        assert told.returncode == 0, told.stderr
        assert "hosts" in told.stdout
        until(lambda: _ask(box, "other").status_code == 200, what="the new route")
        until(lambda: _ask(box, "convo").status_code == 404, what="the old one is gone")
        assert [h["name"] for h in box.told("hosts")["hosts"]] == ["b"]
