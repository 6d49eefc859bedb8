"""Fake children on a fake card: what they take is read by the program's own reader."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmsup.telemetry.nvml import Nvml
from qmsup.telemetry.reading import Reader
from tests.fakes.gpu import FakeCard, FakeGpu, State
from tests.support.box import FAKE_CHILD, until
from tests.support.machine import FakeMachine
from tests.support.servers import free_port


@contextmanager
def child(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-S", str(FAKE_CHILD), "--port", str(free_port()), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def used(nvml: Nvml, pid: int) -> int | None:
    return next((use.used for use in nvml.read().uses if use.pid == pid), None)


def test_a_child_takes_memory_as_it_loads_and_gives_it_back_when_it_ends(gpu: FakeGpu) -> None:
    gpu.show(State())
    nvml = Nvml()

    with child("--vram", "5000") as loaded:
        until(lambda: used(nvml, loaded.pid) == 5000)
        loaded.terminate()
        assert loaded.wait(10) == 0
        assert used(nvml, loaded.pid) is None
    assert nvml.read().cards[0].used == 0


def test_it_takes_it_bit_by_bit_and_a_killed_one_gives_it_back_too(gpu: FakeGpu) -> None:
    gpu.show(State())
    nvml = Nvml()

    with child("--vram", "5000000", "--load-seconds", "3600", "--fake-gpu", str(gpu.file)) as slow:
        seen = until(lambda: used(nvml, slow.pid) or 0)
        more = until(lambda: now if (now := used(nvml, slow.pid) or 0) > seen else 0)
        assert 0 < seen < more < 5000000
        os.kill(slow.pid, 9)
        slow.wait(10)
        assert nvml.read().cards[0].used == 0


def test_a_machine_of_files_can_follow(gpu: FakeGpu, tmp_path: Path) -> None:
    gpu.show(State(cards=(FakeCard(total=16000, base=300),)))
    machine = FakeMachine(tmp_path / "machine")
    reader = Reader(root=machine.root, wish="")

    with machine.follows(gpu):
        with child("--vram", "5000") as loaded:
            until(lambda: [use.used for use in reader.read([loaded.pid]).uses] == [5000])
            until(lambda: [card.used for card in reader.read([]).cards] == [5300])
        until(lambda: [card.used for card in reader.read([]).cards] == [300])


def test_one_that_does_not_fit_dies_as_the_real_one_does(gpu: FakeGpu) -> None:
    gpu.show(State(cards=(FakeCard(total=8000), FakeCard(uuid="GPU-2", total=9000))))

    with child("--vram", "5000") as first:
        nvml = Nvml()
        until(lambda: used(nvml, first.pid) == 5000)
        with child("--vram", "5000") as second:
            _, said = second.communicate(timeout=10)
        with child("--vram", "5000", "--card", "GPU-2") as third:
            until(lambda: used(nvml, third.pid) == 5000)

    assert second.returncode == 1
    assert "out of memory, 3000 MiB are left" in said
