"""What a child says of its memory becomes the model's size, over a restart of the whole box too."""

from typing import Any

import pytest

from tests.support.box import Box, fake, serving, until

pytestmark = pytest.mark.system

SAYS_5_GB = "--load-log 'load_tensors:      CUDA0 model buffer size =  5120.00 MiB'"


def sizes(box: Box, name: str) -> list[Any]:
    row = box.model(name)
    return [row[f"vram_{kind}mib"] for kind in ("", "estimated_", "measured_", "peak_")]


def test_a_measured_model_keeps_its_size_over_a_restart_and_makes_room_by_it() -> None:
    models = {
        "grown": fake(f"--name grown {SAYS_5_GB}", estVramGB=1.0),
        "other": fake("--name other", estVramGB=2.0),
    }
    with serving(models, vramBudgetGB=6) as box:
        assert sizes(box, "grown") == [None, 1024, None, None]
        assert box.chat("grown").status_code == 200
        until(lambda: sizes(box, "grown") == [5120, 1024, 5120, 5120])

        box.kill_scheduler()

        assert sizes(box, "grown") == [5120, 1024, 5120, None]  # it was gone on with
        assert box.chat("other").status_code == 200
        assert box.chat("grown").status_code == 200
        assert box.states() == {"grown": "ready", "other": "stopped"}
        assert "MEASURED" in box.run("ps").stdout
