"""Who uses a model: requests, and jobs that keep one against everybody else."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.box import fake, serving, until

pytestmark = pytest.mark.system


def test_a_request_under_way_is_a_lease() -> None:
    models = {"a": fake("--event-interval 0.05")}
    with serving(models) as box, box.chat("a", stream=True, max_tokens=10_000) as stream:
        lines = stream.iter_lines()
        next(lines)
        (worker,) = box.told("status")["listeners"]

        (lease,) = box.told("leases")["leases"]

        assert (lease["model"], lease["kind"], lease["owner"]) == ("a", "request", worker["worker"])
        assert requests.get(box.url("/api/leases"), timeout=5).json() == {"leases": [lease]}
        assert "request" in box.run("leases").stdout


def test_releasing_or_renewing_what_is_none_is_answered() -> None:
    with serving({"a": fake()}) as box:
        assert box.run("renew", "job-0").returncode == 1
        assert box.run("lease", "b", "--ttl", "5", "--purpose", "x").returncode == 1


def test_a_lease_keeps_its_model_against_the_requests_of_others() -> None:
    with serving({"a": fake(), "b": fake()}, vramBudgetGB=4) as box, ThreadPoolExecutor(1) as pool:
        lease = box.run("lease", "a", "--ttl", "600", "--purpose", "nightly").stdout.strip()
        assert box.states()["a"] == "ready"
        waiting = pool.submit(box.chat, "b")
        try:
            until(lambda: box.model("b")["queued"] == 1)
            (listed,) = box.told("leases")["leases"]
            assert (listed["lease"], listed["kind"], listed["purpose"]) == (lease, "job", "nightly")
            assert box.run("renew", lease, "--ttl", "600").returncode == 0
            assert not waiting.done()
        finally:
            box.run("release", lease)

        assert waiting.result(20).status_code == 200
        assert box.run("release", lease).returncode == 0
        assert box.run("renew", lease).returncode == 1


def test_a_lease_that_nobody_renews_lets_its_model_go() -> None:
    with serving({"a": fake(), "b": fake()}, vramBudgetGB=4) as box:
        body = {"model": "a", "ttl_s": 0.5, "purpose": "short"}
        taken = requests.post(box.url("/api/leases"), json=body, timeout=20)
        assert taken.status_code == 200, taken.text

        assert box.chat("b").status_code == 200
        assert box.told("leases")["leases"] == []
