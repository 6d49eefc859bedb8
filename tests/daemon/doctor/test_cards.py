"""GPUs: what a sample says, and the whole way with a fake driver library in a program of its own."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qmsup.core.vram.sample import Card, Ram, Sample, Use
from qmsup.daemon.doctor import cards
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.cards import look, of_sample
from qmsup.spec import Spec
from qmsup.units import MiB, Seconds
from tests.fakes.gpu import DRIVER_NOT_LOADED, FakeCard, FakeGpu, FakeUse, State
from tests.support.children import running
from tests.support.doctoring import graded
from tests.support.gpu import environment

CARD = Card(uuid="GPU-1", name="Nine", total=MiB(24576), used=MiB(900), has_processes=True)
MINE = Use(pid=os.getpid(), card="GPU-1", used=MiB(100))
GONE = Use(pid=2**22 + 1, card="GPU-1", used=MiB(100))
SAMPLES = {
    "who uses what is known": (CARD, [MINE], "ok"),
    "nobody uses it": (CARD, [], "ok"),
    "its use is not known": (replace(CARD, used=None), [], "warn"),
    "by whom is not known": (replace(CARD, has_processes=False), [], "warn"),
    "how much by whom is not known": (CARD, [replace(MINE, used=None)], "warn"),
    "others may hide theirs": (CARD, [MINE, replace(GONE, used=None)], "ok"),
    "by processes of another namespace": (CARD, [GONE], "warn"),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_card_is_well_when_it_can_be_told_who_uses_it(sample: str) -> None:
    card, uses, grade = SAMPLES[sample]

    found = list(of_sample(Sample(cards=(card,), uses=tuple(uses)), None))

    assert graded(found) == [(grade, "Nine")]
    assert bool(found[0].do) is (grade != "ok")


def test_an_old_card_beside_another_may_be_hidden() -> None:
    old = replace(CARD, uuid="GPU-2", name="Old", has_processes=False)
    foreign = replace(old, uuid="PCI-0000:03:00.0")

    [_, beside] = of_sample(Sample(cards=(CARD, old)), None)
    [alone] = of_sample(Sample(cards=(old,)), None)
    [_, others] = of_sample(Sample(cards=(CARD, foreign)), None)

    says = ["CUDA_VISIBLE_DEVICES" in found.do for found in (beside, alone, others)]
    assert says == [True, False, False]


def test_budgets_beyond_what_is_there_are_told() -> None:
    spec = Spec(models={}, vram_budget=MiB(32768), ram_budget=MiB(9000))
    sample = Sample(cards=(CARD,), ram=Ram(total=MiB(8000), available=MiB(7000)))

    assert graded(of_sample(sample, spec))[1:] == [
        ("warn", "vramBudgetGB"),
        ("warn", "ramBudgetGB"),
    ]
    small = replace(spec, vram_budget=MiB(20000), ram_budget=MiB(4000))
    assert graded(of_sample(sample, small)) == [("ok", "Nine"), ("ok", "ram")]


def test_a_driver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    ends = threading.Event()
    monkeypatch.setattr(cards, "_PATIENCE", Seconds(0.1))
    monkeypatch.setattr(cards, "_sample", lambda: ends.wait(20) and Sample())

    found = list(look(Box()))
    ends.set()

    assert graded(found) == [("bad", "driver")]


def told(gpu: FakeGpu, places: Path, *arguments: str | Path) -> list[dict[str, Any]]:
    asked = subprocess.run(
        [sys.executable, "-m", "qmsup", "doctor", "--json", *arguments],
        env={**os.environ, **environment(gpu)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.stderr == ""
    findings = json.loads(asked.stdout)["findings"]
    return [finding for finding in findings if finding["check"] == "gpu"]


def test_the_drivers_library_is_asked(tmp_path: Path, places: Path) -> None:
    gpu = FakeGpu(tmp_path)
    gpu.show(State(cards=(FakeCard(base=500),), uses=(FakeUse(pid=os.getpid(), used=700),)))

    [card] = told(gpu, places)

    assert (card["grade"], card["about"]) == ("ok", "Fake 24 GB")
    assert "1 processes" in card["says"]


def test_models_that_run_are_looked_for_on_the_cards(tmp_path: Path, places: Path) -> None:
    file = tmp_path / "qmsup.yaml"
    on_gpu = {"cmd": "sleep 60 ${PORT}", "kind": "generic", "estVramGB": 1}
    file.write_text(
        json.dumps({"models": {"m": on_gpu, "cpu": {"cmd": "sleep 60 ${PORT}", "kind": "generic"}}})
    )
    gpu = FakeGpu(tmp_path)
    card = FakeCard()
    with running("sleep", "60") as child, running("sleep", "60", model="cpu"):
        gpu.show(State(cards=(card,), uses=(FakeUse(pid=child.pid, used=700),)))
        [_, well] = told(gpu, places, "-c", file)
        gpu.show(State(cards=(card,)))
        [_, unseen] = told(gpu, places, "-c", file)

    assert (well["grade"], unseen["grade"]) == ("ok", "warn")
    assert unseen["says"].endswith("card: m")


def test_a_driver_that_does_not_answer_is_told_with_its_reason(
    tmp_path: Path, places: Path
) -> None:
    gpu = FakeGpu(tmp_path)
    gpu.show(State(cards=(FakeCard(error=15),)))
    [lost] = told(gpu, places)
    gpu.show(State(init=DRIVER_NOT_LOADED))
    [none] = told(gpu, places)

    assert (lost["grade"], none["grade"]) == ("warn", "ok")
    assert "cannot be read" in lost["says"]
