"""Each verb against a scheduler that answers over the real socket: what it asks, prints and ends with."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.ids import ModelId
from qmsup.wire.controlling import Trouble
from tests.control.conftest import Run
from tests.support.standin import StandInScheduler

NAME = "a-model-with-a-name/that-is-much-longer-than-any-terminal-is-wide:Q4_K_M" * 3
PS = {
    "models": [
        {
            "name": "chat",
            "state": "ready",
            "pid": 4711,
            "port": 5801,
            "vram_mib": 5325,
            "ram_mib": 812,
            "ctx": 8192,
            "inflight": 1,
            "queued": 2,
            "hold_s": 9.5,
            "ttl_s": 425.0,
            "age_s": 7620.0,
            "error": None,
        },
        {"name": NAME, "state": "stopped", "pid": None, "error": "exit code 1: no such file"},
    ],
    "vram_budget_mib": 24576,
}
STATUS = {
    "pid": 815,
    "epoch": 3,
    "version": "0.1.0",
    "since": time.time() - 90_000,
    "config": "/etc/qmsup.yaml",
    "listeners": [{"name": "main", "worker": "main-42-9f", "pid": 42, "waiting": 1, "held": 2}],
}


def test_ps_is_a_table_in_which_no_name_is_cut(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("ps", PS)

    ended = qmsup("ps")

    heading, chat, other, *notes = ended.out.splitlines()
    assert ended.code == 0
    assert heading.split() == [
        "NAME",
        "STATE",
        "PID",
        "PORT",
        "VRAM",
        "RAM",
        "CTX",
        "INFLIGHT",
        "QUEUED",
        "HOLD",
        "TTL",
        "AGE",
    ]
    assert chat.split() == [
        "chat",
        "ready",
        "4711",
        "5801",
        "5.2G",
        "812M",
        "8192",
        "1",
        "2",
        "9s",
        "7m05s",
        "2h07m",
    ]
    assert other.split() == [NAME, "stopped", *"----------"]
    assert notes == ["", f"{NAME}: exit code 1: no such file", "VRAM budget 24.0G"]


def test_ps_tells_who_takes_nothing_new(scheduler: StandInScheduler, qmsup: Run) -> None:
    models = [{"name": "chat", "state": "ready", "closing": "unload"}]
    scheduler.says("ps", {"models": models})

    heading, chat = (line.split() for line in qmsup("ps").out.splitlines())

    assert chat[heading.index("STATE")] == "draining"


def test_ps_tells_of_a_pin_where_a_hold_would_be(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("ps", {"models": [{"name": "chat", "state": "stopped", "pinned": True}]})

    heading, chat = (line.split() for line in qmsup("ps").out.splitlines())

    assert chat[heading.index("HOLD")] == "pinned"


def test_ps_tells_what_was_measured_in_a_table_of_its_own(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    sizes = {"vram_estimated_mib": 5325, "vram_measured_mib": 4700, "vram_peak_mib": 4800}
    models = [{"name": "chat", **sizes}, {"name": "idle", "vram_measured_mib": 90}, {"name": "new"}]
    scheduler.says("ps", {"models": models})

    lines = [line.split() for line in qmsup("ps").out.splitlines()]

    assert lines[lines.index([]) + 1 :] == [
        ["NAME", "ESTIMATE", "MEASURED", "PEAK"],
        ["chat", "5.2G", "4.6G", "4.7G"],
        ["idle", "-", "90M", "-"],
    ]


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        ({"is_trusted": False, "because": "no GPU can be read"}, []),
        (
            {"is_trusted": False, "because": "child 7 hides", "total_mib": 24576, "used_mib": 512},
            ["512M of 24.0G GPU memory in use; budgets alone count: child 7 hides"],
        ),
        (
            {
                "is_trusted": True,
                "total_mib": 24576,
                "used_mib": 14848,
                "ours_mib": 5120,
                "foreign_mib": 9728,
                "floor_mib": 1536,
                "ceiling_mib": 15360,
            },
            [
                "14.5G of 24.0G GPU memory in use: 5.0G by models, 9.5G by others (at rest 1.5G); ceiling 15.0G"
            ],
        ),
    ],
    ids=["no GPU", "a reading that cannot be trusted", "a game"],
)
def test_ps_tells_who_uses_the_gpu(
    scheduler: StandInScheduler, qmsup: Run, memory: dict[str, object], told: list[str]
) -> None:
    scheduler.says("ps", {"models": [], "memory": memory})

    assert qmsup("ps").out.splitlines()[1:] == ([""] if told else []) + told


def test_ps_on_a_terminal_folds_long_names(
    scheduler: StandInScheduler, qmsup: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.says("ps", PS)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")

    ended = qmsup("ps")

    lines = re.sub(r"\x1b\[[0-9;]*m", "", ended.out).splitlines()
    table = lines[: lines.index("")]
    assert max(map(len, table)) <= 100
    assert "".join(line.split()[0] for line in table[2:]) == NAME


def test_ps_for_programs_is_the_answer_itself(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("ps", {**PS, "of a later version": True})

    assert json.loads(qmsup("ps", "--json").out) == {**PS, "of a later version": True}


def test_status_tells_the_scheduler_and_its_workers(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.says("status", STATUS)

    ended = qmsup("status")

    about, config, heading, worker = ended.out.splitlines()
    assert ended.code == 0
    assert about == "scheduler pid 815, epoch 3, version 0.1.0, up 1d01h"
    assert config == "config /etc/qmsup.yaml"
    assert heading.split() == ["LISTENER", "WORKER", "PID", "WAITING", "HELD"]
    assert worker.split() == ["main", "main-42-9f", "42", "1", "2"]
    assert json.loads(qmsup("status", "--json").out) == STATUS


def test_status_and_ps_say_that_a_box_takes_no_work(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    says = "draining: no new work is taken until `qmsup undrain`, restarts do not end it"
    scheduler.says("status", {**STATUS, "draining": True})
    scheduler.says("ps", {"models": [], "draining": True})

    assert says in qmsup("status").out.splitlines()
    assert says in qmsup("ps").out.splitlines()


@pytest.mark.parametrize(
    ("times", "often"), [(1, "once, 1m30s ago"), (3, "3 times, the last 1m30s ago")]
)
def test_status_tells_what_met_a_bug(
    times: int, often: str, scheduler: StandInScheduler, qmsup: Run
) -> None:
    mishap = {"part": "feed", "times": times, "last": time.time() - 90, "doing": "Look"}
    told = {**mishap, "because": "ValueError at feed.py:133"}
    scheduler.says("status", {**STATUS, "mishaps": [told]})

    about = qmsup("status").out.splitlines()[2]

    assert about == (
        f"feed met a bug {often} at Look: ValueError at feed.py:133;"
        " the log has it, please report it"
    )


def test_load_waits_and_says_what_came_of_it(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("load", {"model": "chat", "text": "chat is ready on port 5801"})

    ended = qmsup("load", "chat")

    assert (ended.code, ended.out) == (0, "chat is ready on port 5801\n")
    assert scheduler.asked[0].args == {"model": "chat"}


def test_unload_names_models_or_means_all(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("unload", {"stopped": ["a", "b"], "text": "unloaded"})

    assert qmsup("unload").out == "stopped: a, b\n"
    assert qmsup("unload", "a", "b", "--drain").code == 0

    assert [question.args for question in scheduler.asked] == [
        {"models": [], "drain": False},
        {"models": ["a", "b"], "drain": True},
    ]


def test_load_and_unload_for_programs_are_the_answer(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.says("load", {"model": "chat", "text": "ready"})
    scheduler.says("unload", {"stopped": ["chat"], "text": ""})

    assert json.loads(qmsup("load", "chat", "--json").out) == {"model": "chat", "text": "ready"}
    assert json.loads(qmsup("unload", "--json").out) == {"stopped": ["chat"], "text": ""}


def test_unload_of_nothing_says_so(scheduler: StandInScheduler, qmsup: Run) -> None:
    scheduler.says("unload", {"stopped": [], "text": "unloaded"})

    assert qmsup("unload").out == "nothing was running\n"


@pytest.mark.parametrize("arguments", [("load", "chat"), ("unload", "chat")])
def test_a_refusal_ends_with_1_and_its_words(
    scheduler: StandInScheduler, qmsup: Run, arguments: tuple[str, ...]
) -> None:
    scheduler.says(arguments[0], Trouble(code="model_not_found", message="no model\n'chat'"))

    ended = qmsup(*arguments)

    hint = "; `qmsup ps` shows those there are"
    assert (ended.code, ended.out, ended.err) == (1, "", f"qmsup: no model 'chat'{hint}\n")


@pytest.mark.parametrize("arguments", [("ps",), ("status",), ("load", "chat"), ("unload",)])
def test_without_a_scheduler_it_ends_with_3_and_how_to_start_one(
    qmsup: Run, arguments: tuple[str, ...]
) -> None:
    ended = qmsup(*arguments)

    assert (ended.code, ended.out) == (3, "")
    assert ended.err.count("\n") == 1
    assert "start it with `qmsup serve -c FILE`" in ended.err


def test_an_answer_that_does_not_come_in_time_ends_with_4(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.says("load", None)

    ended = qmsup("load", "chat", "--timeout", "0.3")

    assert ended.code == 4
    assert ended.err.startswith("qmsup: no answer to 'load' within 0.3 s")
    assert ended.err.count("\n") == 1


def test_an_answer_of_another_shape_is_an_error_in_one_line(
    scheduler: StandInScheduler, qmsup: Run
) -> None:
    scheduler.says("ps", {"models": 7})

    ended = qmsup("ps")

    assert ended.code == 1
    assert ended.err.startswith("qmsup: the scheduler answered with another Ps")
    assert ended.err.count("\n") == 1


def write_log(model: str, text: str) -> Path:
    path = where.log_file(ModelId(model))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_logs_shows_the_end_of_one(qmsup: Run) -> None:
    write_log("org/chat", "one\ntwo\nthree\n")

    assert qmsup("logs", "org/chat", "-n", "2").out == "two\nthree\n"


def test_logs_of_all_have_headers(qmsup: Run) -> None:
    write_log("org/chat", "one\n")
    write_log("b", "two\n")

    assert qmsup("logs").out == "==> b <==\ntwo\n\n==> org/chat <==\none\n"


def test_logs_for_programs_are_objects(qmsup: Run) -> None:
    write_log("chat", "one\ntwo\n")

    lines = [json.loads(line) for line in qmsup("logs", "--json").out.splitlines()]

    assert lines == [{"model": "chat", "line": "one"}, {"model": "chat", "line": "two"}]


def test_logs_of_an_unknown_model_names_those_that_have_one(qmsup: Run) -> None:
    assert f"no model has a log yet in {where.state_dir()}" in qmsup("logs", "chta").err
    write_log("chat", "one\n")

    ended = qmsup("logs", "chta")

    assert ended.code == 2
    assert ended.err.startswith("qmsup: no log of 'chta' at ")
    assert "models with a log: chat (see" in ended.err
    assert ended.err.count("\n") == 1


def test_where_no_model_has_a_log_all_logs_are_no_riddle(qmsup: Run) -> None:
    ended = qmsup("logs")

    assert (ended.code, ended.out) == (0, "")
    assert f"in {where.state_dir()}, which QMSUP_STATE_DIR" in ended.err


def test_logs_follow_one_until_interrupted(places: Path) -> None:
    log = write_log("chat", "old\n")
    with following("chat") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "old\n"
        with log.open("a") as file:
            file.write("new\n")
        assert process.stdout.readline() == "new\n"
        process.send_signal(signal.SIGINT)

        assert process.wait(10) == 130


def test_logs_of_a_model_that_wrote_nothing_have_no_header(qmsup: Run) -> None:
    write_log("chat", "")

    assert qmsup("logs").out == ""


def test_logs_follow_what_is_written_and_who_comes_later(places: Path) -> None:
    log = write_log("chat", "old\n")
    with following("--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["line"] == "old"
        with log.open("a") as file:
            file.write("new\n")
        assert json.loads(process.stdout.readline())["line"] == "new"
        write_log("late", "first\n")
        assert json.loads(process.stdout.readline()) == {"model": "late", "line": "first"}


@contextlib.contextmanager
def following(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "qmsup", "logs", "-f", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
