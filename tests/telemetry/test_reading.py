from pathlib import Path

import psutil
import pytest

from qmsup.core.vram.sample import Sample
from qmsup.telemetry.reading import ROOT_VARIABLE, Reader
from tests.fakes.gpu import FakeGpu, FakeUse, State
from tests.support.machine import FakeMachine, client


def test_cards_of_all_makes_stand_in_one_sample(gpu: FakeGpu, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.amd_card(1)
    machine.opens(7, 3, *client(1, "drm-memory-vram: 100 MiB"))
    gpu.show(State(uses=(FakeUse(pid=7, used=50),)))

    sample = Reader(root=tmp_path).read()

    assert [card.uuid for card in sample.cards] == ["GPU-1", "PCI-0000:03:00.0"]
    assert [(use.pid, use.used) for use in sample.uses] == [(7, 50), (7, 100)]
    assert sample.ram is not None


def test_of_other_makes_only_the_processes_named_are_walked(gpu: FakeGpu, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.amd_card()
    for pid in (7, 8):
        machine.opens(pid, 3, *client(pid, "drm-memory-vram: 100 MiB"))

    assert [use.pid for use in Reader(root=tmp_path).read([8]).uses] == [8]
    assert Reader(root=tmp_path).read([]).uses == ()


def test_a_walk_has_an_end(gpu: FakeGpu, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.amd_card()
    machine.opens(7, 3, *client(7, "drm-memory-vram: 100 MiB"))
    moments = iter(range(100))

    sample = Reader(root=tmp_path, worked=lambda: float(next(moments))).read()

    assert len(sample.cards) == 1
    assert sample.uses == ()


def test_a_busy_box_hides_no_process(gpu: FakeGpu, tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    machine.amd_card()
    machine.opens(7, 3, *client(7, "drm-memory-vram: 100 MiB"))
    moments = iter(range(100))

    sample = Reader(root=tmp_path, clock=lambda: float(next(moments))).read()

    assert [use.pid for use in sample.uses] == [7]


def test_the_environment_may_name_another_root(
    gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeMachine(tmp_path).amd_card()
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))

    assert len(Reader().read([]).cards) == 1


def test_the_wish_limits_nvidias_cards(gpu: FakeGpu, tmp_path: Path) -> None:
    gpu.show(State())

    assert Reader(root=tmp_path, wish="").read().cards == ()


def test_what_fails_in_a_way_nobody_thought_of_is_left_out_and_told_once(
    gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gpu.show(State())
    reader = Reader(root=tmp_path)

    with monkeypatch.context() as broken:
        broken.delattr(psutil, "virtual_memory")
        samples = [reader.read(), reader.read()]

    assert [(len(sample.cards), sample.ram) for sample in samples] == [(1, None)] * 2
    assert caplog.messages.count("telemetry.failed") == 1
    assert reader.read().ram is not None


def test_an_empty_machine_has_no_cards_and_can_be_closed(gpu: FakeGpu, tmp_path: Path) -> None:
    reader = Reader(root=tmp_path)

    sample = reader.read()
    reader.close()

    assert (sample.cards, sample.uses) == (Sample().cards, Sample().uses)
