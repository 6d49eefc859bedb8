"""A GPU for the demo that needs none: the fake driver library, and a game that plays on the card it tells of."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scripts.demonstration.telling import DemoError
from tests.fakes import gpu, gpu_library

_TOTAL = 24 * 1024  # MiB
_DESKTOP = 512


class Card:
    """One card with a desktop on it.

    Attributes:
        environment: what makes programs see it.
    """

    def __init__(self, folder: Path) -> None:
        """Build the library and switch the card on.

        Raises:
            DemoError: there is no C compiler.
        """
        try:
            library = gpu_library.library()
        except gpu_library.NoCompiler as missing:
            raise DemoError(str(missing)) from missing
        self._gpu = gpu.FakeGpu(folder)
        self._gpu.show(gpu.State(cards=(gpu.FakeCard(total=_TOTAL, base=_DESKTOP),)))
        others = os.environ.get("LD_LIBRARY_PATH")
        self.environment = {
            "LD_LIBRARY_PATH": f"{library.parent}:{others}" if others else str(library.parent),
            "CUDA_VISIBLE_DEVICES": "0",  # whatever it is here: it may hide the card
            gpu.VARIABLE: str(self._gpu.file),
        }

    @contextmanager
    def game(self, gigabytes: int) -> Iterator[int]:
        """Something that has nothing to do with qmsup and takes so much; its pid.

        Raises:
            DemoError: it does not fit.
        """
        command = [sys.executable, "-S", gpu.__file__, str(self._gpu.file), str(gigabytes * 1024)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise DemoError("the game found no room on the card")
                yield process.pid
            finally:
                process.kill()

    def shares(self, names: Mapping[int, str]) -> str:
        """Who has how much of it, in words; `names` by pid."""
        held = {names.get(pid, f"pid {pid}"): mib for pid, mib in self._gpu.held().items()}
        held["desktop"] = _DESKTOP
        told = [f"{name} {_gigabytes(mib)}" for name, mib in sorted(held.items())]
        free = _gigabytes(_TOTAL - sum(held.values()))
        return f"on the card, of {_gigabytes(_TOTAL)} GB: {', '.join(told)}, free {free}"


def _gigabytes(mib: int) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0")
