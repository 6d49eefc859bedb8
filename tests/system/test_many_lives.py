"""A whole box through many loads and unloads."""

import psutil
import pytest
import requests

from tests.support.box import Box, serving, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

CYCLES = 200


def test_two_hundred_loads_and_unloads_leave_nothing_behind() -> None:
    quick = {"cmd": "sh -c 'exec sleep 3600' ${PORT}", "checkEndpoint": "none", "kind": "generic"}
    with serving({"m": quick}) as box:
        scheduler = psutil.Process(box.told("status")["pid"])
        live(box)
        before = left_by(scheduler)

        for _ in range(CYCLES):
            live(box)

        until(lambda: left_by(scheduler) == before, what=f"as at first: {before}")
        assert not list((box.folder / "state/children").iterdir())


def live(box: Box) -> None:
    """Load the model and unload it."""
    for verb in ("load", "unload"):
        answer = requests.post(box.url(f"/api/models/{verb}/m"), timeout=20)
        assert answer.status_code == 200, answer.text


def left_by(scheduler: psutil.Process) -> tuple[int, int, int]:
    """Its descriptors, threads and children, zombies included."""
    return scheduler.num_fds(), scheduler.num_threads(), len(scheduler.children())
