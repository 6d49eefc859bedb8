"""Builds the fake driver library, `libnvidia-ml.so.1`: once per machine and user, then shared."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

NAME = "libnvidia-ml.so.1"
_SOURCES = Path(__file__).with_name("nvml")
_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC")


class NoCompiler(Exception):  # noqa: N818 - a state of the machine, no mistake
    """There is none; says what to install."""


def library() -> Path:
    """The library, in a folder of its own for LD_LIBRARY_PATH.

    Raises:
        NoCompiler: it is not built yet, and cannot be.
    """
    sources = sorted(_SOURCES.glob("*.[ch]"))
    version = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"qmsup-nvml-{os.getuid()}" / version
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    built = folder / NAME
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side build it once
        if not built.exists():
            new = folder / "new.so"
            programs = [source for source in sources if source.suffix == ".c"]
            flags = (*_FLAGS, f"-Wl,-soname,{NAME}", "-o")
            subprocess.run([_compiler(), *flags, new, *programs], check=True)
            new.replace(built)
    return built


def _compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        message = "the fake GPU needs a C compiler. On Debian: apt install gcc libc6-dev"
        raise NoCompiler(message)
    return found
