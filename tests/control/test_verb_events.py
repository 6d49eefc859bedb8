"""`qmsup events` against a real scheduler."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.conftest import Run
from tests.support.scheduler_actor import (
    QUICK,
    RunningScheduler,
    models_of,
    scheduler_of,
)


@pytest.fixture
def running(places: Path) -> Iterator[RunningScheduler]:
    with scheduler_of(models_of(QUICK), places) as scheduler:
        yield scheduler


def test_the_last_decisions_are_told_and_no_more(running: RunningScheduler, qmsup: Run) -> None:
    running.worker().takes_up("r-1")

    ended = qmsup("events")

    assert ended.code == 0
    assert "decision.swap.started  model=m" in ended.out


def test_with_json_each_line_is_an_object(running: RunningScheduler, qmsup: Run) -> None:
    running.worker().takes_up("r-1")

    lines = [json.loads(line) for line in qmsup("events", "--json").out.splitlines()]

    assert {"decision.swap.started"} <= {line["topic"] for line in lines}
    assert all(line["body"]["turn"] for line in lines)


@pytest.mark.usefixtures("places")
def test_a_topic_that_there_is_none_of_is_refused_and_those_there_are_are_named(qmsup: Run) -> None:
    ended = qmsup("events", "--topic", "decisions")

    assert ended.code == 2
    assert "no topic begins with 'decisions': write one of model., line.," in ended.err


@pytest.mark.parametrize("topic", ["decision", "dec", "decision.swap", "model.a.b"])
@pytest.mark.usefixtures("places")
def test_a_topics_begin_may_be_as_long_or_short_as_one_likes(topic: str, qmsup: Run) -> None:
    assert qmsup("events", "--topic", topic).code == 3  # it goes on to ask; nobody is there


@pytest.mark.usefixtures("places")
def test_without_a_scheduler_it_says_so(qmsup: Run) -> None:
    ended = qmsup("events")
    assert ended.code == 3
    assert "qmsup serve" in ended.err


def test_followed_it_goes_on_with_what_changes(running: RunningScheduler) -> None:
    running.worker()
    command = [
        sys.executable,
        "-m",
        "qmsup",
        "events",
        "-f",
        "--topic",
        "model.",
        "--topic",
        "decision.",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        late = threading.Timer(60.0, following.kill)
        late.start()
        for line in following.stdout:  # decisions so far: the state is asked for by then
            if "listener.joined" in line:
                break
            raise AssertionError(line)
        worker = running.worker("main-2-def")
        worker.takes_up("r-1")
        assert any("state=ready" in line for line in following.stdout)
        late.cancel()
        following.kill()
