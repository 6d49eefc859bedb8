import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup import wire
from qmsup.control.client import Client
from qmsup.errors import AskTimedOutError, PeerError, RefusedError, SchedulerUnavailableError
from qmsup.transport import context
from qmsup.units import Seconds
from qmsup.wire.controlling import Question, Reply, Trouble
from tests.support.standin import Answer, StandInScheduler


def test_an_answer_is_the_body(scheduler: StandInScheduler) -> None:
    scheduler.says("ps", {"models": []})

    with Client() as client:
        assert client.ask("ps") == {"models": []}
        assert client.ask("ps") == {"models": []}

    first, second = scheduler.asked
    assert first.id != second.id


def test_arguments_travel(scheduler: StandInScheduler) -> None:
    scheduler.says("unload", {})

    with Client() as client:
        client.ask("unload", models=["chat"], drain=True)

    assert scheduler.asked[0].args == {"models": ["chat"], "drain": True}


def test_a_refusal_has_its_code_and_its_words(scheduler: StandInScheduler) -> None:
    scheduler.says("load", Trouble(code="model_not_found", message="no model 'x'"))

    with Client() as client, pytest.raises(RefusedError, match="no model 'x'") as caught:
        client.ask("load", model="x")

    assert caught.value.code == "model_not_found"


def test_a_lost_answer_is_asked_for_again_under_the_same_id(scheduler: StandInScheduler) -> None:
    def the_second_time(question: Question) -> Answer:
        return {"id": question.id} if len(scheduler.asked) > 1 else None

    scheduler.answers("load", the_second_time)

    with Client() as client:
        body = client.ask("load", model="chat")

    assert {question.id for question in scheduler.asked} == {body["id"]}


def test_an_answer_that_takes_too_long_is_told_from_no_scheduler(
    scheduler: StandInScheduler,
) -> None:
    scheduler.says("load", None)

    with (
        Client(timeout=Seconds(0.3)) as client,
        pytest.raises(AskTimedOutError, match=r"'load' within 0\.3 s.*qmsup ps"),
    ):
        client.ask("load", model="chat")


def test_a_scheduler_without_a_sign_of_life_is_unavailable(scheduler: StandInScheduler) -> None:
    scheduler.says("ping", None)
    scheduler.says("ps", None)

    with (
        Client(timeout=Seconds(0.3)) as client,
        pytest.raises(SchedulerUnavailableError, match="does not answer"),
    ):
        client.ask("ps")


def test_a_late_answer_to_an_older_question_is_passed_over(scheduler: StandInScheduler) -> None:
    scheduler.says("load", None)
    scheduler.says("ps", {"models": []})

    with Client(timeout=Seconds(0.3)) as client:
        with pytest.raises(AskTimedOutError):
            client.ask("load", model="chat")
        scheduler.says("load", {"model": "chat"})

        assert client.ask("ps") == {"models": []}


def test_a_question_outlives_the_scheduler_it_was_asked(places: Path) -> None:
    where.make_private(where.runtime_dir())
    first, second = (StandInScheduler(where.scheduler_endpoint()) for _ in range(2))
    second.says("load", {"text": "by the second"})
    heard, answered = threading.Event(), threading.Event()
    first.answers("load", lambda _: heard.set())

    def restart() -> None:
        with first:
            assert heard.wait(10)
        with second:
            assert answered.wait(10)

    restarting = threading.Thread(target=restart)
    restarting.start()
    first.wait_until_bound()
    with Client(timeout=Seconds(10.0)) as client:
        body = client.ask("load", model="chat")
    answered.set()
    restarting.join()
    context.destroy()

    assert body == {"text": "by the second"}
    assert first.asked[0] == second.asked[0]


def test_without_a_scheduler_it_says_which_socket_and_how_to_start(places: Path) -> None:
    with pytest.raises(SchedulerUnavailableError) as caught:
        Client()

    assert str(where.scheduler_socket()) in str(caught.value)
    assert "is not running: start it with `qmsup serve" in str(caught.value)


def test_the_socket_file_of_a_dead_scheduler_is_no_scheduler(places: Path) -> None:
    where.make_private(where.runtime_dir())
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(where.scheduler_socket()))

    with pytest.raises(SchedulerUnavailableError, match="is not running"):
        Client()


def test_a_path_too_long_for_a_socket_says_so() -> None:
    with pytest.raises(SchedulerUnavailableError, match=r"too long.*QMSUP_RUNTIME_DIR"):
        Client(f"ipc:///tmp/{'x' * 120}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every socket")
def test_another_users_scheduler_is_named_as_such(scheduler: StandInScheduler) -> None:
    where.scheduler_socket().chmod(0)

    with pytest.raises(SchedulerUnavailableError, match="belongs to another user"):
        Client()


def test_a_refusal_without_a_reason_is_not_understood(scheduler: StandInScheduler) -> None:
    scheduler.answers("ps", lambda question: Reply(v=1, id=question.id, ok=False))

    with Client() as client, pytest.raises(PeerError, match="refused 'ps' without a reason"):
        client.ask("ps")


def test_an_answer_in_another_version_is_not_understood(scheduler: StandInScheduler) -> None:
    scheduler.answers("ps", lambda question: Reply(v=2, id=question.id, ok=True))

    with Client() as client, pytest.raises(PeerError, match="version 2 of the control protocol"):
        client.ask("ps")


def test_the_client_that_the_protocols_page_shows_works(scheduler: StandInScheduler) -> None:
    scheduler.says("ps", {"models": ["chat"]})
    page = (Path(wire.__file__).parent / "PROTOCOL.md").read_text()
    source = page.split("```python\n")[1].split("```")[0]

    ran = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ran.stdout, ran.stderr) == ("{'models': ['chat']}\n", "")
