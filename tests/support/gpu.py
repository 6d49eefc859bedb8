"""A fake GPU for tests: the library built, and the environment in which a program finds it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes import gpu as program
from tests.fakes.gpu import VARIABLE, FakeGpu
from tests.fakes.gpu_library import NoCompiler, library


def fake_library() -> Path:
    """The fake driver library; the test is skipped where it cannot be built."""
    try:
        return library()
    except NoCompiler as error:
        pytest.skip(str(error))


def environment(gpu: FakeGpu) -> dict[str, str]:
    """What makes a program see this card instead of the machine's."""
    folders = [str(fake_library().parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        VARIABLE: str(gpu.file),
        "LD_LIBRARY_PATH": ":".join(folder for folder in folders if folder),
    }


def holder(gpu: FakeGpu, mib: int) -> list[str]:
    """The command of a program that takes so much of the first card, and has it until it is ended."""
    return [sys.executable, "-S", program.__file__, str(gpu.file), str(mib)]


@contextmanager
def holding(gpu: FakeGpu, mib: int) -> Iterator[subprocess.Popen[str]]:
    """Such a program, while it has it."""
    with subprocess.Popen(holder(gpu, mib), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holds it\n"
            yield process
        finally:
            process.kill()
