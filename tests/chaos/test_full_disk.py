"""A state folder without a byte left: models are started, jobs are told of, and the scheduler may die. Root alone."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from scripts.soaking.disk import Disk
from tests.support.box import Box, fake, serving
from tests.support.rendering import begin, renderer, until_over

pytestmark = pytest.mark.system


@pytest.fixture
def filled() -> Iterator[tuple[Box, Disk]]:
    """A box that was asked once, and whose disk was filled then."""
    models = {"early": fake("--name early"), "late": fake("--name late"), "paint": renderer()}
    with ExitStack() as stack:
        disks: list[Disk] = []

        def command(folder: Path) -> Sequence[str]:
            disk = Disk(folder / "state")
            if disk.mount():
                disks.append(disk)
                stack.callback(disk.unmount)
            return [sys.executable, "-m", "qmsup", "serve"]

        with serving(models, command=command, vramBudgetGB=10) as box:
            if not disks:
                pytest.skip("only root may mount a disk")
            assert box.chat("early").status_code == 200
            disks[0].fill()
            yield box, disks[0]


def _pids(box: Box) -> dict[str, int]:
    return {model["name"]: model["pid"] for model in box.told("ps")["models"]}


def test_a_full_disk_keeps_nobody_from_anything(filled: tuple[Box, Disk]) -> None:
    box, disk = filled

    assert box.chat("late").status_code == 200  # no file names its child
    job = begin(box, seconds=0.3)
    assert job.status_code == 202, job.text
    assert until_over(box, job.json()["id"])["status"] == "completed"
    children = _pids(box)

    box.kill_scheduler()

    assert _pids(box) == children
    for model in ("early", "late"):
        assert box.chat(model).status_code == 200
    disk.empty()
    assert begin(box, seconds=0.1).status_code == 202
