"""The job watcher and a real program that makes images, through all that may befall either."""

import os
import signal
import socket
import tempfile
import threading
import time
from contextlib import ExitStack, closing, suppress
from http.client import HTTPException

import pytest
import requests

from qmsup import child_ends
from qmsup import places as folders
from qmsup.actors import job_visitors, mishaps
from qmsup.actors.job_book import KEPT_FOR, JobBook, JobRecord
from qmsup.actors.job_news import BeginJob, EndJob, KeepJob, LeaseEnded, LeaseRefused
from qmsup.errors import Code, Refusal
from qmsup.ids import LeaseId
from qmsup.upstream import job_answers
from tests.support.box import until
from tests.support.watching_jobs import FIRST, PAINT, SdServer, WatchedJobs, watched

pytestmark = pytest.mark.usefixtures("places")

_JOB = {"prompt": "a cat", "seconds": 600}


def test_a_job_is_begun_under_its_lease_watched_and_let_go_of_at_its_end() -> None:
    with watched() as (jobs, server):
        status, told = jobs.ask("POST", "/sdcpp/v1/img_gen?model=paint", _JOB)

        assert (status, told["status"], told["kind"]) == (202, "queued", "img_gen")
        (begun,) = jobs.told(BeginJob)
        assert (begun.request, begun.purpose) == ("q-1", "img_gen")
        assert told["id"] == f"{begun.lease}-job-1"
        assert told["poll_url"] == f"/sdcpp/v1/jobs/{told['id']}"
        sent = server.stats()["last"]
        assert sent["target"] == "/sdcpp/v1/img_gen?model=paint"
        assert '"prompt": "a cat"' in sent["body"]
        jobs.until_status(told["id"], "generating")
        until(lambda: jobs.told(KeepJob))
        assert jobs.told(EndJob) == []

        server.finish()

        document = jobs.until_status(told["id"], "completed")
        assert document["id"] == told["id"]
        assert document["result"]["images"][0]["b64_json"]
        jobs.until_ended()


def test_a_job_that_fails_has_failed_in_its_servers_words() -> None:
    with watched("--fail-jobs") as (jobs, _):
        document = jobs.until_status(jobs.begin(seconds=0), "failed")

        assert document["error"] == {"code": "generation_failed", "message": "out of luck"}
        jobs.until_ended()


@pytest.mark.parametrize("status", [500, 503, 429, 401])
def test_a_server_that_is_in_trouble_for_a_while_is_asked_again(status: int) -> None:
    flags = ("--poll-status", str(status), "--poll-troubles", "4")
    with watched(*flags) as (jobs, server):
        job = jobs.begin(seconds=0)

        jobs.until_status(job, "completed")

        assert server.stats()["polls"] > 4
        jobs.until_ended()


def test_a_server_that_is_slow_is_waited_for() -> None:
    with watched("--poll-seconds", "0.5", "--take-seconds", "0.5") as (jobs, _):
        jobs.until_status(jobs.begin(seconds=0), "completed")
        jobs.until_ended()


@pytest.mark.parametrize("status", [404, 410])
def test_a_job_that_its_server_forgot_is_lost(status: int) -> None:
    with watched("--poll-status", str(status)) as (jobs, _):
        document = jobs.until_status(jobs.begin(), "failed")

        assert document["error"]["code"] == "job_lost"
        assert str(status) in document["error"]["message"]
        jobs.until_ended()


@pytest.mark.parametrize("status", [400, 429, 500])
def test_what_its_server_answers_in_place_of_a_job_is_passed_on(status: int) -> None:
    with watched("--refuse-jobs", str(status)) as (jobs, _):
        assert jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB) == (status, {"error": "not today"})
        jobs.until_ended()


def test_a_server_that_is_gone_is_told_of() -> None:
    with watched() as (jobs, server):
        server.close()

        status, told = jobs.ask("POST", "/sdcpp/v1/vid_gen", _JOB)

        assert (status, told["error"]["code"]) == (502, "upstream_failed")
        jobs.until_ended()


def test_what_a_server_died_of_is_told_to_who_waits_for_its_job() -> None:
    with watched() as (jobs, server):
        log = folders.log_file(PAINT)
        log.parent.mkdir(parents=True, exist_ok=True)
        child_ends.leave(log, FIRST, "the child was killed by SIGSEGV")
        server.close()

        status, told = jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB)

        assert status == 502
        assert told["error"]["message"].endswith("the child was killed by SIGSEGV")


def test_an_answer_that_names_no_job_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            conn, _ = server.accept()
            with conn:
                conn.recv(65536)
                conn.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=serve)
        thread.start()
        jobs = WatchedJobs(f"127.0.0.1:{server.getsockname()[1]}")
        with closing(jobs):
            status, told = jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB)
        thread.join(10)
        assert (status, told["error"]["code"]) == (502, "upstream_failed")
        assert len(jobs.told(EndJob)) == 1


def test_a_job_ends_with_the_child_that_ran_it() -> None:
    with watched() as (jobs, server):
        job = jobs.begin()
        jobs.until_status(job, "generating")
        os.kill(server.process.pid, signal.SIGKILL)
        jobs.upstream = ""
        lease = jobs.told(BeginJob)[0].lease

        jobs.ref.tell(LeaseEnded(lease=lease, because="its model stopped"))

        error = jobs.until_status(job, "failed")["error"]
        assert (error["code"], "its model stopped" in error["message"]) == ("model_stopped", True)
        jobs.until_ended()


def test_a_lease_that_ended_alone_is_taken_again() -> None:
    with watched() as (jobs, server):
        job = jobs.begin()
        until(lambda: jobs.told(KeepJob))
        lease = jobs.told(BeginJob)[0].lease

        jobs.ref.tell(LeaseEnded(lease=lease, because="it was not renewed in time"))

        until(lambda: len(jobs.told(KeepJob)) == 2)
        kept = jobs.told(KeepJob)[-1]
        assert (kept.lease, kept.model, kept.incarnation) == (lease, PAINT, FIRST)
        server.finish()
        jobs.until_status(job, "completed")


def test_without_a_lease_nothing_is_begun() -> None:
    with watched() as (jobs, server):
        jobs.gives = False
        asked = jobs.asks("POST", "/sdcpp/v1/img_gen", _JOB)
        until(lambda: jobs.told(BeginJob))
        refusal = Refusal(code=Code.SHUTTING_DOWN, message="the end")

        jobs.ref.tell(LeaseRefused(lease=jobs.told(BeginJob)[0].lease, refusal=refusal))

        status, told = asked.result(20)
        assert (status, told["error"]["code"], told["error"]["message"]) == (
            503,
            "shutting_down",
            "the end",
        )
        assert server.stats()["jobs"] == 0


def test_who_waits_for_its_turn_keeps_its_place_until_it_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with watched() as (jobs, _), ExitStack() as visitors:
        jobs.begin()
        waiting = [visitors.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for each in waiting:
            each.connect(str(folders.jobs_socket()))
            head = f"POST /sdcpp/v1/img_gen HTTP/1.1\r\nHost: {jobs.upstream}\r\n"
            each.sendall(head.encode() + b"Content-Length: 2\r\n\r\n{}")
        assert _is_answered(jobs)
        monkeypatch.setattr(job_visitors, "_MOST", 2)
        assert not _is_answered(jobs)
        for each in waiting:
            each.settimeout(0.05)
            with pytest.raises(TimeoutError):
                each.recv(1)

        waiting[0].close()
        until(lambda: _is_answered(jobs))


def _is_answered(jobs: WatchedJobs) -> bool:
    with suppress(OSError, HTTPException):
        return jobs.ask("GET", "/sdcpp/v1/jobs/none", {})[0] == 404
    return False


def test_who_leaves_before_the_job_is_begun_begins_none() -> None:
    with watched() as (jobs, server):
        jobs.gives = False
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folders.jobs_socket()))
            client.sendall(b"POST /sdcpp/v1/img_gen HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            until(lambda: jobs.told(BeginJob))

        jobs.give(jobs.told(BeginJob)[0].lease)

        jobs.until_ended()
        assert server.stats()["jobs"] == 0


def test_who_leaves_once_the_job_is_on_its_way_loses_none() -> None:
    with watched("--take-seconds", "0.5") as (jobs, server):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folders.jobs_socket()))
            client.sendall(b"POST /sdcpp/v1/img_gen HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            until(lambda: server.stats()["last"])

        until(lambda: list(folders.jobs_dir().glob("*.json")))
        jobs.until_ended()


def test_a_job_that_waits_in_its_server_is_cancelled_and_one_that_renders_is_not() -> None:
    with watched() as (jobs, server):
        url = f"http://{server.upstream}/sdcpp/v1/img_gen"
        theirs = requests.post(url, json=_JOB, timeout=20).json()["id"]  # somebody else's
        job = jobs.begin()
        jobs.until_status(job, "queued")

        status, told = jobs.ask("POST", f"/sdcpp/v1/jobs/{job}/cancel")

        assert (status, told["id"], told["status"]) == (200, job, "cancelled")
        assert jobs.document(job) == told
        jobs.until_ended()
        assert jobs.ask("POST", f"/sdcpp/v1/jobs/{job}/cancel") == (200, told)
        server.finish()
        until(lambda: _status_of(server, theirs) == "completed")
        job = jobs.begin()
        jobs.until_status(job, "generating")
        status, told = jobs.ask("POST", f"/sdcpp/v1/jobs/{job}/cancel")
        assert (status, "cannot be cancelled" in told["error"]) == (409, True)


def test_a_server_is_given_one_job_at_a_time_in_the_order_in_which_they_came() -> None:
    with watched() as (jobs, server):
        first = jobs.begin()
        jobs.until_status(first, "generating")
        second = jobs.asks("POST", "/sdcpp/v1/img_gen", _JOB)
        with socket.socket(socket.AF_UNIX) as client:  # who will not wait for its turn
            client.connect(str(folders.jobs_socket()))
            host = f"Host: {server.upstream}\r\nContent-Length: 2\r\n\r\n{{}}"
            client.sendall(f"POST /sdcpp/v1/img_gen HTTP/1.1\r\n{host}".encode())
            assert jobs.ask("GET", "/x")[0] == 404  # so it was heard
        third = jobs.asks("POST", "/sdcpp/v1/vid_gen", _JOB)
        assert jobs.ask("GET", "/x")[0] == 404
        assert len(jobs.told(BeginJob)) == 1

        server.finish()
        job = second.result(20)[1]["id"]
        jobs.until_status(job, "generating")
        assert not third.done()
        server.finish()

        assert third.result(20)[0] == 400  # it makes no videos
        jobs.until_ended()
        assert (len(jobs.told(BeginJob)), server.stats()["most_pending"]) == (3, 1)


def _status_of(server: SdServer, job: str) -> object:
    answer = requests.get(f"http://{server.upstream}/sdcpp/v1/jobs/{job}", timeout=20)
    return answer.json()["status"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/sdcpp/v1/jobs/qm0123456789ab-1/cancel"),
        ("GET", "/sdcpp/v1/jobs/qm0123456789ab-1"),
        ("GET", "/sdcpp/v1/img_gen"),
        ("POST", "/v1/images/generations"),
    ],
)
def test_what_is_no_job_is_none(method: str, path: str) -> None:
    jobs = WatchedJobs("127.0.0.1:1")
    with closing(jobs):
        status, told = jobs.ask(method, path)

    assert (status, told["error"]["code"]) == (404, "job_not_found")
    assert jobs.wishes == []


def test_how_a_job_stands_is_told_to_whoever_found_no_document() -> None:
    with watched() as (jobs, _server):
        job = jobs.begin()

        status, told = jobs.ask("GET", f"/sdcpp/v1/jobs/{job}")

        assert (status, told["id"]) == (200, job)


def test_a_job_for_whose_body_there_is_no_room_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with watched() as (jobs, _server):
        status, told = jobs.ask("POST", "/sdcpp/v1/img_gen", {"prompt": "x" * 1_200_000})

        assert (status, told["error"]["code"]) == (503, "model_unavailable")
        assert "/nowhere" in told["error"]["message"]
        assert jobs.told(BeginJob) == []


def test_a_server_that_does_not_answer_cancels_nothing() -> None:
    with watched() as (jobs, server):
        job = jobs.begin()
        server.close()

        status, told = jobs.ask("POST", f"/sdcpp/v1/jobs/{job}/cancel")

        assert (status, told["error"]["code"]) == (502, "upstream_failed")
        assert jobs.told(EndJob) == []


def test_another_life_goes_on_with_a_job_once_its_child_is_known_to_run() -> None:
    with watched() as (jobs, server):
        job = jobs.begin()
        jobs.until_status(job, "generating")
        jobs.stop()
        jobs.gives, jobs.wishes = False, [*jobs.told(BeginJob)]
        polls = server.stats()["polls"]

        jobs.start()

        until(lambda: jobs.told(KeepJob))
        assert server.stats()["polls"] == polls  # by now another one might have its port
        jobs.give(jobs.told(KeepJob)[0].lease)
        server.finish()
        jobs.until_status(job, "completed")
        jobs.until_ended()


def test_a_job_whose_worker_did_not_hear_of_it_is_not_begun_again() -> None:
    with watched() as (jobs, server):
        begun = jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB, request="q-lost")
        jobs.stop()
        jobs.start()

        status, told = jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB, request="q-lost")

        assert (status, told["id"]) == (202, begun[1]["id"])
        assert jobs.known == [frozenset(), {jobs.told(BeginJob)[0].lease}]
        assert server.stats()["jobs"] == 1


def test_a_job_whose_child_ended_between_two_lives_has_failed() -> None:
    with watched() as (jobs, _):
        job = jobs.begin()
        jobs.stop()
        jobs.upstream = ""

        jobs.start()

        assert jobs.until_status(job, "failed")["error"]["code"] == "model_stopped"
        jobs.until_ended()


def test_jobs_of_two_servers_that_give_one_id_are_told_apart() -> None:
    other = SdServer()
    with closing(other), watched() as (jobs, server):
        first = jobs.begin()
        jobs.upstream = other.upstream
        second = jobs.begin()
        assert first.partition("-")[2] == second.partition("-")[2]

        other.finish()
        until(lambda: jobs.document(second)["status"] != "queued")
        other.finish()

        jobs.until_status(second, "completed")
        assert jobs.document(first)["status"] == "generating"
        server.finish()
        jobs.until_status(first, "completed")


def test_a_job_is_forgotten_some_time_after_its_end() -> None:
    record = JobRecord(
        id="qm0123456789ab-1",
        theirs="1",
        lease=LeaseId("qm0123456789ab"),
        model=PAINT,
        incarnation=FIRST,
        upstream="127.0.0.1:1",
        kind="img_gen",
        ended=time.time() - KEPT_FOR + 0.5,
    )
    JobBook().keep(record, b'{"status": "completed"}')

    jobs = WatchedJobs("127.0.0.1:1")
    with closing(jobs):
        until(lambda: not list(folders.jobs_dir().iterdir()))
    assert jobs.wishes == []


def test_who_asks_what_meets_a_bug_is_refused() -> None:
    """`//[` is no address, which is not said by an answer of ours."""
    mishaps.forget()
    with watched() as (jobs, _server):
        status, told = jobs.ask("GET", "//[")

        assert (status, told["error"]["code"]) == (500, "internal_error")
    mishaps.forget()


def test_a_job_whose_server_says_what_meets_a_bug_is_let_go_of_and_the_next_one_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mishaps.forget()
    with watched() as (jobs, server):
        with monkeypatch.context() as patch:
            patch.setattr(job_answers, "named", lambda *_: 1 / 0)
            status, told = jobs.ask("POST", "/sdcpp/v1/img_gen", _JOB)
            assert (status, told["error"]["code"]) == (500, "internal_error")
            until(lambda: len(jobs.told(EndJob)) == 1)

        server.finish()
        assert jobs.begin(seconds=0)
    mishaps.forget()
