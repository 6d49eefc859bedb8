"""The whole way in a program of its own: the loader finds the library, pynvml calls it, the reader reads it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.gpu import DRIVER_NOT_LOADED, FakeGpu
from tests.fakes.gpu_timeline import Timeline
from tests.support.box import until
from tests.support.gpu import environment

PROGRAM = """
import json, sys
from dataclasses import asdict
from qmsup.telemetry.reading import Reader
reader = Reader()
for _ in sys.stdin:
    print(json.dumps(asdict(reader.read([]))), flush=True)
reader.close()
"""

DAY = """
{"steps": [
    {"at": 0, "cards": [{"uuid": "GPU-9", "name": "Nine", "total": 24576, "base": 500}]},
    {"at": 1, "uses": [{"pid": 4242, "used": 8192, "card": "GPU-9", "kind": "cg"},
                       {"pid": 4243, "used": 100, "card": "GPU-9"}]},
    {"at": 2, "hidden": [4243]},
    {"at": 3, "init": 9},
    {"at": 4, "init": 0, "uses": []}
]}
"""


class Asked:
    """A program that reads when asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        assert isinstance(told, dict)
        return told


@contextmanager
def reading(gpu: FakeGpu, **more: str) -> Iterator[Asked]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment(gpu), "CUDA_VISIBLE_DEVICES": "0", **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Asked(process)
    assert process.returncode == 0


def test_a_day_of_a_card_is_read_as_it_goes(tmp_path: Path) -> None:
    gpu, day = FakeGpu(tmp_path), Timeline.parse(json.loads(DAY))

    with reading(gpu) as program:
        gpu.show(day.at(0.5))
        card = {
            "uuid": "GPU-9",
            "name": "Nine",
            "total": 24576,
            "used": 500,
            "has_processes": True,
            "is_integrated": False,
        }
        first = program.read()
        assert (first["cards"], first["uses"]) == ([card], [])
        assert first["ram"]["total"] >= first["ram"]["available"] > 0

        gpu.show(day.at(1))
        game = {"pid": 4242, "card": "GPU-9", "used": 8192}
        assert program.read()["uses"] == [game, {"pid": 4243, "card": "GPU-9", "used": 100}]

        gpu.show(day.at(2.9))
        hidden = program.read()
        assert hidden["uses"] == [game, {"pid": 4243, "card": "GPU-9", "used": None}]
        assert hidden["cards"][0]["used"] == 8792

        gpu.show(day.at(3))
        assert day.at(3).init == DRIVER_NOT_LOADED
        assert program.read()["cards"] == []

        gpu.show(day.at(100))
        until(lambda: program.read()["cards"] == [card])


def test_the_environment_may_hide_cards(tmp_path: Path) -> None:
    gpu = FakeGpu(tmp_path)
    gpu.show(Timeline.parse(json.loads(DAY)).at(0))

    with reading(gpu, CUDA_VISIBLE_DEVICES="-1") as program:
        assert program.read()["cards"] == []


def test_without_the_library_there_is_no_card_and_no_complaint(tmp_path: Path) -> None:
    gpu = FakeGpu(tmp_path)
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")

    with reading(gpu, LD_LIBRARY_PATH=str(tmp_path)) as program:
        found = program.read()

    assert (found["cards"], found["uses"]) == ([], [])
    assert found["ram"] is not None
