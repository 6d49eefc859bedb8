"""`qmsup hosts`, and draining one, against a scheduler that answers over the real socket."""

import json

import pytest

from tests.control.conftest import Run
from tests.support.standin import StandInScheduler

_MODEL = {"name": "chat", "parallel": 4, "queue_max": 8, "inflight": 2, "queued": 1, "ctx": 4096}
_BOX1 = {
    "name": "box1",
    "url": "http://10.0.0.3:80",
    "kind": "qmsup",
    "healthy": True,
    "loaded": ["chat"],
    "draining": True,
    "models": [_MODEL, {"name": "code"}],
}
_THIS_BOX = {
    "name": "local",
    "kind": "this box",
    "healthy": True,
    "loaded": ["alpha", "beta"],
}
_BOX2 = {"name": "box2", "url": "http://10.0.0.4:80", "because": "it cannot be reached"}


def test_hosts_is_a_table_with_a_line_for_each_model(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.says("hosts", {"hosts": [_BOX1, _BOX2, {"name": "box3"}, _THIS_BOX]})

    told = qmsup("hosts").out

    lines = [line.split() for line in told.splitlines()]
    assert lines[0][:6] == ["HOST", "URL", "STATE", "KIND", "MODEL", "LOADED"]
    assert lines[1][-5:] == ["chat", "yes", "2/4", "1/8", "4096"]
    assert lines[2][-5:] == ["code", "no", "0/1", "0/0", "-"]
    assert "draining, healthy" in told
    assert "unhealthy: it cannot be reached" in told
    assert "unhealthy: not seen lately" in told
    assert lines[5][:6] == ["local", "-", "healthy", "this", "box", "-"]
    assert "alpha, beta" in told
    assert json.loads(qmsup("hosts", "--json").out)["hosts"][0] == _BOX1


def test_hosts_says_where_they_would_come_from(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("hosts", {"hosts": []})

    assert qmsup("hosts").out == "no hosts: the configuration names none (`hosts:`)\n"


@pytest.mark.parametrize("verb", ["drain", "undrain"])
def test_one_host_can_be_drained(verb: str, scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says(verb, {"text": "it is so"})

    assert qmsup(verb, "box1").out == "it is so\n"

    assert [question.args for question in scheduler.asked] == [{"host": "box1"}]
