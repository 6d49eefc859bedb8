"""deploy/supervisord/qmsup.conf under the real supervisord: each program restarted under load, then all stopped."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from tests.support.arrivals import Arrivals
from tests.support.box import Box, fake, serving, until
from tests.support.children import is_alive
from tests.support.streams import RawStream

pytestmark = pytest.mark.system

_SHIPPED = Path(__file__).parents[2] / "deploy" / "supervisord" / "qmsup.conf"
_LISTENERS: dict[str, dict[str, object]] = {"main": {}, "agents": {}}


def _models(flags: str = "") -> dict[str, dict[str, Any]]:
    return {
        "chat": fake(f"--name chat --event-interval 0.05 {flags}", concurrencyLimit=8),
        "other": fake("--name other", concurrencyLimit=8),
    }


def _adapted(folder: Path) -> str:
    """The shipped file with the paths of this box, and whatever else stands in it."""
    text = _SHIPPED.read_text()
    text = text.replace("/opt/qmsup/.venv/bin/qmsup", f"{sys.executable} -m qmsup")
    text = text.replace("/etc/qmsup/qmsup.yaml", str(folder / "config.yaml"))
    text = re.sub(r"stdout_logfile=.*", "stdout_logfile=/dev/fd/1", text)
    text = text.replace("maxbytes=20MB", "maxbytes=0")  # a pipe cannot be rotated
    text = text.replace('"/run/qmsup"', f'"{folder}/run"')
    text = text.replace('"/var/lib/qmsup"', f'"{folder}/state"')
    return re.sub(r"^user=.*\n", "", text, flags=re.MULTILINE)


def _command(folder: Path) -> list[str]:
    (folder / "run").mkdir(mode=0o700)
    conf = folder / "supervisord.conf"
    conf.write_text(
        f"""
[supervisord]
nodaemon=true
logfile={folder}/supervisord.log
pidfile={folder}/supervisord.pid
[unix_http_server]
file={folder}/s.sock
[supervisorctl]
serverurl=unix://{folder}/s.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
{_adapted(folder)}
"""
    )
    return [str(Path(sys.executable).with_name("supervisord")), "-c", str(conf)]


def _ctl(box: Box, *words: str) -> str:
    ctl = Path(sys.executable).with_name("supervisorctl")
    ran = subprocess.run(
        [str(ctl), "-c", str(box.folder / "supervisord.conf"), *words],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def box(enough: Path) -> Iterator[Box]:
    with serving(
        _models(f"--until {enough}"),
        listeners=_LISTENERS,
        command=_command,
        onExit="keep",
        vramBudgetGB=4,
        sendLoadingState=True,
    ) as box:
        yield box
        _ctl(box, "stop", "all")
        for process in box.processes():
            if "child.py" in " ".join(process.cmdline()):  # onExit: keep has kept it
                os.kill(process.pid, signal.SIGKILL)


def _pid(box: Box, program: str) -> int:
    return int(_ctl(box, "pid", f"qmsup:{program}"))


@pytest.mark.timeout(180)
def test_each_program_is_restarted_under_load_and_only_its_own_clients_notice(
    box: Box, enough: Path
) -> None:
    with ExitStack() as clients:
        main = clients.enter_context(RawStream(box, "chat"))
        agents = clients.enter_context(RawStream(box, "chat", "agents", max_tokens=300))
        for stream in (main, agents):
            stream.until_seen(b"chat3 ")
        waiter = clients.enter_context(RawStream(box, "other", max_tokens=3))
        waiter.until_seen(b": qm-status: waiting")
        child, scheduler = box.model("chat")["pid"], _pid(box, "scheduler")

        with Arrivals(box, "chat", ("main",)) as arrivals:  # while all this goes on
            arrivals.more(1)
            _ctl(box, "restart", "qmsup:scheduler")
            assert _pid(box, "scheduler") != scheduler
            until(lambda: _is_told_of(box, child))
            arrivals.more(1)

            _ctl(box, "signal", "HUP", "qmsup:main")
            arrivals.more()

            _ctl(box, "restart", "qmsup:agents")
        assert arrivals.failed == []
        assert agents.until_end()
        until(lambda: _answers(box, "agents"))

        enough.touch()
        main.until_seen(b"[DONE]", within=60)
        numbers = main.numbers()
        assert numbers == list(range(len(numbers)))
        waiter.until_seen(b"[DONE]", within=60)
        until(lambda: not is_alive(child), what="it made room for who had waited")


def _is_told_of(box: Box, child: int) -> bool:
    ran = box.run("ps", "--json")
    return ran.returncode == 0 and box.model("chat")["pid"] == child


def _answers(box: Box, listener: str) -> bool:
    try:
        return requests.get(box.url("/health", listener), timeout=5).status_code == 200
    except requests.ConnectionError:
        return False


def test_stopping_all_leaves_nothing_where_children_are_not_kept() -> None:
    with serving(
        _models(), listeners=_LISTENERS, command=_command, onExit="stop", vramBudgetGB=4
    ) as box:
        assert box.chat("chat", max_tokens=2).status_code == 200
        child = box.model("chat")["pid"]

        _ctl(box, "stop", "qmsup:*")

        assert not psutil.pid_exists(child)
