"""Tiny models for a real llama-server: made once per machine and user, then shared by every test run."""

import fcntl
import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

_GENERATOR = Path(__file__).parents[2] / "scripts" / "make_tiny_gguf.py"
_PROGRAM = "llama-server-vulkan"


def tiny_model(tag: str, **options: float) -> Path:
    """The model that answers in the words `TAG0 TAG1 ...`; options as the generator's: `eos_p=0`, `experts=64`.

    Another generator or other options give another file, so what is cached is never stale.
    """
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in sorted(options.items())]
    version = sha256("\n".join([_GENERATOR.read_text(), *flags]).encode()).hexdigest()[:12]
    model = _cache() / f"{tag}-{version}.gguf"
    with model.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side make it once
        if not model.exists():
            subprocess.run([sys.executable, _GENERATOR, model, "--tag", tag, *flags], check=True)
    return model


def llama_server() -> Path:
    """The real program, from the wheel installed beside this Python."""
    program = Path(sys.executable).with_name(_PROGRAM)
    if not program.exists():
        message = f"{program} is missing: pip install -e '.[demo,test]', or run scripts/test"
        raise FileNotFoundError(message)
    return program


def _cache() -> Path:
    own = Path(tempfile.gettempdir()) / f"qmsup-models-{os.getuid()}"
    folder = Path(os.environ.get("QMSUP_TEST_CACHE", own))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
