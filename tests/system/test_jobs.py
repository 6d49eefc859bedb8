"""Jobs: begun over one port, asked for over any, and lost by nobody's end but their server's."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.box import fake, serving, until
from tests.support.rendering import begin, cancel, finish, job, leases_of_jobs, renderer, until_over

pytestmark = pytest.mark.system


def test_a_job_has_a_lease_while_it_runs_and_a_document_when_its_model_is_gone() -> None:
    models = {"paint": renderer(), "chat": fake()}
    ports: dict[str, dict[str, str]] = {"main": {}, "other": {}}
    with serving(models, listeners=ports, vramBudgetGB=4) as box:
        begun = begin(box, seconds=600)

        assert begun.status_code == 202, begun.text
        told = begun.json()
        assert (told["kind"], told["status"]) == ("img_gen", "queued")
        assert told["id"].startswith("qm")
        assert told["id"].endswith("-job-1")
        assert told["poll_url"] == f"/sdcpp/v1/jobs/{told['id']}"
        assert begun.headers["X-QM-Model"] == "paint"
        (lease,) = leases_of_jobs(box)
        assert (lease["model"], lease["owner"], lease["purpose"]) == ("paint", "jobs", "img_gen")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(box.chat, "chat")  # for the job's end; then its model is stopped
            until(lambda: box.model("chat")["queued"] == 1)
            assert job(box, told["id"], "other")["status"] == "generating"
            finish(box, told["id"])
            assert waiting.result(20).status_code == 200

        assert box.states() == {"paint": "stopped", "chat": "ready"}
        done = job(box, told["id"], "other")
        assert (done["id"], done["status"]) == (told["id"], "completed")
        assert done["result"]["images"][0]["b64_json"]
        assert leases_of_jobs(box) == []
        head = requests.head(box.url(f"/sdcpp/v1/jobs/{told['id']}"), timeout=5)
        assert (head.status_code, head.content) == (200, b"")
        assert cancel(box, told["id"]).json() == done  # over is over
        unknown = requests.get(box.url("/sdcpp/v1/jobs/qm000000000000-job-1"), timeout=5)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "job_not_found")


def test_one_job_at_a_time_is_given_to_a_server_and_images_wait_in_the_same_line() -> None:
    with serving({"paint": renderer()}) as box, ThreadPoolExecutor(4) as pool:
        first = begin(box, seconds=600).json()["id"]
        others = [pool.submit(begin, box, seconds=0.1) for _ in range(2)]
        until(lambda: box.model("paint")["queued"] == 2)
        image = {"model": "paint", "prompt": "a dog"}
        drawn = pool.submit(
            requests.post, box.url("/v1/images/generations"), json=image, timeout=60
        )
        until(lambda: box.model("paint")["queued"] == 3)
        assert [place["position"] for place in box.told("queue")["queue"]] == [1, 2, 3]

        finish(box, first)
        ids = [first] + [each.result(30).json()["id"] for each in others]

        assert [until_over(box, each)["status"] for each in ids] == ["completed"] * 3
        assert drawn.result(30).status_code == 200
        stats = requests.get(
            f"http://127.0.0.1:{box.model('paint')['port']}/stats", timeout=5
        ).json()
        assert (stats["jobs"], stats["images"], stats["most_pending"]) == (3, 1, 1)


def test_what_a_server_refuses_is_passed_on_and_leaves_no_lease() -> None:
    with serving({"paint": renderer("--most-pending 0")}) as box:
        video = begin(box, kind="vid_gen")
        full = begin(box)
        nameless = requests.post(box.url("/sdcpp/v1/img_gen"), json={"prompt": "x"}, timeout=20)

        assert (video.status_code, video.json()) == (
            400,
            {"error": "loaded model does not support vid_gen"},
        )
        assert (full.status_code, full.json()) == (429, {"error": "job queue is full"})
        assert (nameless.status_code, nameless.json()["error"]["code"]) == (400, "model_missing")
        assert leases_of_jobs(box) == []


def test_a_scheduler_that_is_killed_loses_no_job() -> None:
    with serving({"paint": renderer(), "chat": fake()}, vramBudgetGB=4) as box:
        id_ = begin(box, seconds=600).json()["id"]
        child = box.model("paint")["pid"]
        before = box.told("status")
        os.kill(before["pid"], signal.SIGKILL)
        assert job(box, id_)["status"] in {"queued", "generating"}  # while nobody schedules
        box.until_next_scheduler(before)

        (lease,) = leases_of_jobs(box)
        assert (lease["model"], lease["owner"]) == ("paint", "jobs")
        assert box.model("paint")["pid"] == child
        assert finish(box, id_)["status"] == "completed"
        assert box.chat("chat").status_code == 200
        assert job(box, id_)["status"] == "completed"
        assert box.model("paint")["state"] == "stopped"


def test_a_scheduler_that_is_killed_while_it_begins_a_job_loses_none() -> None:
    with serving({"paint": renderer()}) as box, ThreadPoolExecutor(1) as pool:
        finish(box, begin(box, seconds=600).json()["id"])
        child = box.model("paint")["pid"]
        os.kill(child, signal.SIGSTOP)  # it takes the job, and does not say so
        try:
            begun = pool.submit(begin, box, seconds=0.1)
            until(lambda: leases_of_jobs(box))
            os.kill(box.told("status")["pid"], signal.SIGKILL)
        finally:
            os.kill(child, signal.SIGCONT)

        answer = begun.result(60)

        assert answer.status_code == 202, answer.text
        assert until_over(box, answer.json()["id"])["status"] == "completed"
        assert box.model("paint")["pid"] == child
        until(lambda: leases_of_jobs(box) == [])


def test_a_worker_that_is_killed_loses_no_job() -> None:
    with serving({"paint": renderer()}) as box:
        id_ = begin(box, seconds=600).json()["id"]
        (worker,) = box.told("status")["listeners"]
        os.kill(worker["pid"], signal.SIGKILL)

        until(lambda: [w for w in box.told("status")["listeners"] if w["pid"] != worker["pid"]])

        assert len(leases_of_jobs(box)) == 1
        assert finish(box, id_)["status"] == "completed"
        until(lambda: leases_of_jobs(box) == [])


def test_a_job_whose_server_dies_has_failed_and_says_why() -> None:
    with serving({"paint": renderer("--die-in-job 1")}) as box:
        id_ = begin(box, seconds=1).json()["id"]

        document = until_over(box, id_)

        assert (document["status"], document["error"]["code"]) == ("failed", "model_stopped")
        assert leases_of_jobs(box) == []
        again = begin(box, seconds=0.1)  # by another server, which counts its jobs anew
        assert again.json()["id"] != id_
        assert again.json()["id"].endswith("-job-1")


def test_a_job_that_renders_is_not_cancelled_and_its_path_under_upstream_is_the_same() -> None:
    with serving({"paint": renderer()}) as box:
        body = {"prompt": "a cat", "seconds": 600}
        begun = requests.post(
            box.url("/upstream/paint/sdcpp/v1/img_gen"), json=body, timeout=30
        ).json()
        until(lambda: job(box, begun["id"])["status"] == "generating")

        refused = requests.post(
            box.url(f"/upstream/paint/sdcpp/v1/jobs/{begun['id']}/cancel"), timeout=30
        )

        assert refused.status_code == 409
        assert len(leases_of_jobs(box)) == 1
        shown = requests.get(box.url(f"/upstream/paint/sdcpp/v1/jobs/{begun['id']}"), timeout=5)
        assert shown.json()["id"] == begun["id"]
        assert box.run("unload", "paint").returncode == 0  # an operator may
        assert until_over(box, begun["id"])["error"]["code"] == "model_stopped"


def test_whoever_gives_up_waiting_for_a_turn_begins_no_job() -> None:
    with serving({"paint": renderer()}) as box:
        first = begin(box, seconds=600).json()["id"]
        with pytest.raises(requests.ReadTimeout):
            requests.post(
                box.url("/sdcpp/v1/img_gen"), json={"model": "paint", "prompt": "x"}, timeout=0.5
            )
        until(lambda: box.model("paint")["queued"] == 0)
        assert finish(box, first)["status"] == "completed"
        until(lambda: box.model("paint")["inflight"] == 0)

        port = box.model("paint")["port"]
        assert requests.get(f"http://127.0.0.1:{port}/stats", timeout=5).json()["jobs"] == 1
        assert time.time() - job(box, first)["completed"] < 600


def test_a_limit_of_several_requests_is_none_of_several_jobs() -> None:
    with serving({"paint": renderer(concurrencyLimit=4)}) as box, ThreadPoolExecutor(2) as pool:
        first = begin(box, seconds=600).json()["id"]
        second = pool.submit(begin, box, seconds=0.1)
        until(lambda: box.model("paint")["inflight"] == 2)
        assert requests.get(box.url("/upstream/paint/stats"), timeout=20).json()["jobs"] == 1

        finish(box, first)

        assert until_over(box, second.result(20).json()["id"])["status"] == "completed"
