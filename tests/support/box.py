"""A whole qmsup in a test: `qmsup serve` with real gunicorns and real children, in folders of its own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
import requests

from tests.support.claiming import claim_ports
from tests.support.leaks import marked_with
from tests.support.models import llama_server, tiny_model
from tests.support.servers import free_port

FAKE_CHILD = Path(__file__).parents[1] / "fakes" / "child.py"
_MARK = "QMSUP_TEST_BOX"
_START_PORT = claim_ports()
_READY_WITHIN = 30.0
_GONE_WITHIN = 30.0
_BACK_WITHIN = 60.0

T = TypeVar("T")


def until(look: Callable[[], T], *, within: float = 15.0, what: str = "") -> T:
    """The first true answer of `look`; fails with the last one when the deadline passes."""
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, (
            f"not within {within} s: {what or look} (last: {seen!r})"
        )
        time.sleep(0.01)


def real(tag: str, **options: Any) -> dict[str, Any]:
    """A model entry whose child is the real llama-server; `est` is its estVramGB."""
    est = options.pop("est", 3.0)
    extra = options.pop("args", "-c 2048 -np 2")
    shape = {
        k: options.pop(k) for k in ("dim", "layers", "ff", "heads", "tool_calls") if k in options
    }
    endless = options.pop("eos_p", 0)  # an answer's length is then what the request says
    model = tiny_model(tag, eos_p=endless, **shape)
    return {
        "cmd": f"{llama_server()} -m {model} {extra} --port ${{PORT}}",
        "estVramGB": est,
        **options,
    }


def fake(flags: str = "", **keys: Any) -> dict[str, Any]:
    """A model entry whose child is the fake one, with these flags of it."""
    command = f"{sys.executable} {FAKE_CHILD} --port ${{PORT}} {flags}"
    return {"cmd": command, "kind": "generic", "estVramGB": 3.0, "concurrencyLimit": 4, **keys}


@dataclass(frozen=True, slots=True)
class Box:
    """A running qmsup, seen from outside."""

    folder: Path
    ports: Mapping[str, int]
    process: subprocess.Popen[bytes]
    env: Mapping[str, str]

    def url(self, path: str = "", listener: str = "main") -> str:
        """An address on one of its listeners."""
        return f"http://127.0.0.1:{self.ports[listener]}{path}"

    def run(self, *arguments: str, within: float = 60.0) -> subprocess.CompletedProcess[str]:
        """A verb of the command line against this box."""
        return subprocess.run(
            [sys.executable, "-m", "qmsup", *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )

    def told(self, *arguments: str) -> Any:
        """What a reading verb says with --json."""
        ran = self.run(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def states(self) -> dict[str, str]:
        """Each model's state."""
        return {m["name"]: m["state"] for m in self.told("ps")["models"]}

    def model(self, name: str) -> dict[str, Any]:
        """One model's row of `ps`."""
        return next(m for m in self.told("ps")["models"] if m["name"] == name)

    def log(self) -> str:
        """What `serve` and all its processes wrote."""
        return (self.folder / "serve.log").read_text(errors="replace")

    def decisions(self, *names: str) -> list[dict[str, Any]]:
        """The decision lines of these names, oldest first."""
        lines = [json.loads(x) for x in self.log().splitlines() if x.startswith('{"time"')]
        return [x for x in lines if x["event"] in names]

    def chat(self, model: str, listener: str = "main", **more: Any) -> requests.Response:
        """A small chat completion; `stream=True` leaves the body to be read."""
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8}
        body.update(more)
        return requests.post(
            self.url("/v1/chat/completions", listener),
            json=body,
            stream=bool(more.get("stream")),
            timeout=20,
        )

    def processes(self) -> list[psutil.Process]:
        """Every process of it that is alive, children in sessions of their own included."""
        return marked_with(f"{_MARK}={self.folder}")

    def parts(self) -> list[psutil.Process]:
        """The processes that serve has started. What a part of it leaves behind becomes its child, too."""
        return [p for p in psutil.Process(self.process.pid).children() if _is_part(p)]

    def listener(self, name: str = "main") -> psutil.Process:
        """The gunicorn of a listener."""
        return next(p for p in self.parts() if p.cmdline()[3:5] == ["listener", name])

    def kill_scheduler(self) -> None:
        """Kill it, and wait until the next one answers."""
        before = self.told("status")
        os.kill(before["pid"], signal.SIGKILL)
        self.until_next_scheduler(before)

    def until_next_scheduler(self, before: Mapping[str, Any]) -> None:
        """Wait until the one that comes after this one answers; `before` is its status."""

        def look() -> bool:
            ran = self.run("status", "--json")
            return ran.returncode == 0 and json.loads(ran.stdout)["epoch"] == before["epoch"] + 1

        until(look, within=_BACK_WITHIN, what="the next scheduler")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Stop it as an operator would; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(_GONE_WITHIN)


def _is_part(process: psutil.Process) -> bool:
    """Each is started as the leader of a group; workers are in their listener's."""
    with contextlib.suppress(psutil.Error, ProcessLookupError):
        is_leader = os.getpgid(process.pid) == process.pid
        return is_leader and process.cmdline()[1:3] == ["-m", "qmsup"]
    return False


@contextmanager
def serving(
    models: Mapping[str, Mapping[str, Any]],
    *,
    listeners: Mapping[str, Mapping[str, Any]] | None = None,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    command: Callable[[Path], Sequence[str]] | None = None,
    **keys: Any,
) -> Iterator[Box]:
    """Run `qmsup serve` with these flags and variables; more `keys` go into the top of its configuration.

    A `command`, made of the box's folder, runs in place of `serve`.
    """
    # Not pytest's folder: a Unix socket's path must stay under 108 bytes.
    folder = Path(tempfile.mkdtemp(prefix="qm-"))
    ports = {name: free_port() for name in (listeners or {"main": {}})}
    config = {
        "listeners": {
            name: {"workers": 1, **more, "bind": f"127.0.0.1:{ports[name]}"}
            for name, more in (listeners or {"main": {}}).items()
        },
        "models": models,
        "startPort": _START_PORT,
        "logFormat": "json",
        "unloadTimeout": 2,
        **keys,
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    env = {
        **os.environ,
        **(environment or {}),
        "QMSUP_RUNTIME_DIR": str(folder / "run"),
        "QMSUP_STATE_DIR": str(folder / "state"),
        "QMSUP_CONFIG": str(folder / "config.yaml"),
        "QMSUP_CHECK": "1",
        _MARK: str(folder),
    }
    with (folder / "serve.log").open("wb") as log:
        argv = [sys.executable, "-m", "qmsup", "serve", *flags]
        if command is not None:
            argv = [*command(folder)]
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)
    box = Box(folder, ports, process, env)
    try:
        until(lambda: _is_healthy(box), within=_READY_WITHIN, what="healthy")
        yield box
        if process.poll() is None:
            assert box.stop() == 0, box.log()
        until(lambda: not box.processes(), what=f"nothing left of {box.processes()}")
        assert "Traceback" not in box.log(), box.log()
    except BaseException:
        sys.stderr.write(f"\n--- serve.log\n{box.log()[-8000:]}\n")
        raise
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(_GONE_WITHIN)
        shutil.rmtree(folder, ignore_errors=True)


def _is_healthy(box: Box) -> bool:
    assert box.process.poll() is None, f"serve ended with {box.process.returncode}:\n{box.log()}"
    try:
        return all(
            requests.get(box.url("/health", name), timeout=5).status_code == 200
            for name in box.ports
        )
    except requests.ConnectionError:
        return False
