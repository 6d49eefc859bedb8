"""What the demo needs before the curtain: a folder, models, free ports, a configuration."""

import fcntl
import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.demonstration.telling import DemoError

ROOT = Path(__file__).parents[2]
MODELS = ("alpha", "bravo")
LLAMA_SERVER = Path(sys.executable).with_name("llama-server-vulkan")
QMSUP = Path(sys.executable).with_name("qmsup")
_GENERATOR = ROOT / "scripts" / "make_tiny_gguf.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where things stand: the demo's files, and one port per listener."""

    folder: Path
    ports: tuple[int, int]

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "config.yaml"

    @property
    def log(self) -> Path:
        """What `qmsup serve` says."""
        return self.folder / "serve.log"

    def url(self, listener: int) -> str:
        """The address of the first (0) or second (1) listener."""
        return f"http://127.0.0.1:{self.ports[listener]}"


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """The folder, made if need be, and ours alone inside the block.

    Raises:
        DemoError: another demo works in it, or a program is missing.
    """
    for program in (LLAMA_SERVER, QMSUP):
        if not program.exists():
            raise DemoError(f"{program} is missing: run scripts/demo, which installs it")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"another demo is using {folder}: end it first") from None
        yield folder


def make_model(folder: Path, tag: str) -> tuple[Path, bool]:
    """The model that answers in words of its tag, and whether it had to be made."""
    model = folder / f"{tag}.gguf"
    if model.exists() and model.stat().st_mtime > _GENERATOR.stat().st_mtime:
        return model, False
    # --eos-p 0: it talks until max_tokens, so that the demo shows the same every time.
    subprocess.run([sys.executable, _GENERATOR, model, "--tag", tag, "--eos-p", "0"], check=True)
    return model, True


def write_config(folder: Path) -> Stage:
    """A configuration in which either model fits the budget, and both do not."""
    stage = Stage(folder=folder, ports=free_ports())
    lines = [
        "vramBudgetGB: 8             # what the models may use together",
        "listeners:                  # two ports, one scheduler behind them",
        f'  one: {{bind: "127.0.0.1:{stage.ports[0]}", workers: 1}}',
        f'  two: {{bind: "127.0.0.1:{stage.ports[1]}", workers: 1}}',
        "models:",
    ]
    for tag in MODELS:
        command = shlex.join([str(LLAMA_SERVER), "-m", str(folder / f"{tag}.gguf")])
        lines += [
            f"  {tag}:",
            f"    cmd: {json.dumps(f'{command} --port ${{PORT}} -c 4096 -np 2')}",
            "    estVramGB: 5",
        ]
    stage.config.write_text("\n".join(lines) + "\n")
    return stage


def free_ports() -> tuple[int, int]:
    """One for each listener, free a moment ago."""
    local = ("127.0.0.1", 0)
    with socket.create_server(local) as one, socket.create_server(local) as two:
        return one.getsockname()[1], two.getsockname()[1]
