"""The verbs of leases, pins, draining and reloads, against a scheduler that answers over the real socket."""

import json
import re

import pytest

from qmsup.wire.controlling import Trouble
from tests.control.conftest import Run
from tests.support.standin import StandInScheduler


def test_a_lease_prints_its_id_alone(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.answers("lease", lambda q: {"lease": q.args["lease"], "model": "m", "text": "ready"})

    ended = qmsup("lease", "m", "--ttl", "60", "--purpose", "nightly job", "--owner", "me")

    assert re.fullmatch(r"job-[0-9a-f]{12}\n", ended.out)
    assert scheduler.asked[0].args == {
        "model": "m",
        "ttl_s": 60.0,
        "purpose": "nightly job",
        "owner": "me",
        "lease": ended.out.strip(),
    }
    told = qmsup("lease", "m", "--ttl", "60", "--purpose", "x", "--json")
    assert json.loads(told.out)["model"] == "m"


@pytest.mark.parametrize(
    "arguments",
    [
        ("lease", "m", "--ttl", "60"),
        ("lease", "m", "--purpose", "x"),
        ("lease", "m", "--purpose", "x", "--ttl", "0"),
    ],
)
def test_a_lease_without_purpose_or_time_is_a_usage_error(
    arguments: tuple[str, ...], qmsup: Run
) -> None:
    assert qmsup(*arguments).code == 2


def test_leases_is_a_table(scheduler: StandInScheduler, qmsup: Run) -> None:
    job = {
        "lease": "job-1",
        "model": "m",
        "kind": "job",
        "owner": "me",
        "purpose": "render",
        "ttl_s": 185.0,
    }
    request = {"lease": "q-1", "model": "m", "kind": "request", "owner": "w", "ttl_s": None}
    scheduler.says("leases", {"leases": [job, request]})

    lines = qmsup("leases").out.splitlines()

    assert [line.split() for line in lines] == [
        ["ID", "MODEL", "KIND", "OWNER", "PURPOSE", "TTL"],
        ["job-1", "m", "job", "me", "render", "3m05s"],
        ["q-1", "m", "request", "w", "-", "-"],
    ]
    assert json.loads(qmsup("leases", "--json").out) == {"leases": [job, request]}


def test_leases_says_that_there_is_none(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("leases", {"leases": []})

    assert qmsup("leases").out == "no model is in use\n"


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        (("renew", "job-1"), {"lease": "job-1", "ttl_s": 600.0}),
        (("renew", "job-1", "--ttl", "5"), {"lease": "job-1", "ttl_s": 5.0}),
        (("release", "job-1"), {"lease": "job-1"}),
        (("pin", "m"), {"model": "m"}),
        (("unpin", "m"), {"model": "m"}),
        (("drain",), {}),
        (("undrain",), {}),
    ],
)
def test_what_is_done_at_once_is_told_in_a_sentence(
    arguments: tuple[str, ...],
    args: dict[str, object],
    scheduler: StandInScheduler,
    qmsup: Run,
) -> None:
    scheduler.says(arguments[0], {"text": "it is so"})

    assert qmsup(*arguments).out == "it is so\n"
    assert json.loads(qmsup(*arguments, "--json").out) == {"text": "it is so"}

    assert scheduler.asked[0].args == args


def test_a_reload_tells_what_changed_and_what_needs_more(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    body = {"text": "reloaded: added b", "added": ["b"], "needs_restart": ["startPort …", "x"]}
    scheduler.says("reload", body)

    assert qmsup("reload").out == "reloaded: added b\nstartPort …\nx\n"
    assert json.loads(qmsup("reload", "--json").out) == body


def test_each_problem_of_a_file_is_a_line(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("reload", Trouble(code="config_invalid", message="f:1: a: b\nf:2: c: d"))

    ended = qmsup("reload")

    assert (ended.code, ended.err) == (1, "qmsup: f:1: a: b\nqmsup: f:2: c: d\n")
