"""The doctor beside a box that runs, and beside one whose scheduler was killed."""

import json
import os
import signal
from typing import Any

import pytest

from tests.support.box import Box, fake, real, serving, until

pytestmark = pytest.mark.system


def findings(box: Box, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    ran = box.run("doctor", "--json", *arguments)
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)["findings"]


def said(found: list[dict[str, Any]], check: str) -> dict[str, str]:
    return {f["grade"]: f["says"] for f in found if f["check"] == check}


def test_a_box_that_runs_is_well_while_its_ports_and_children_are_its_own() -> None:
    with serving({"tiny": real("alpha"), "other": fake("--name other")}) as box:
        assert box.chat("tiny").status_code == 200

        code, found = findings(box)

        assert code == 0, [f for f in found if f["grade"] == "bad"]
        assert "runs on" in said(found, "scheduler")["ok"]
        assert said(found, "children") == {"ok": "belong to the scheduler that runs"}
        listener = f"127.0.0.1:{box.ports['main']}"
        [port] = [f["says"] for f in found if f["about"] == listener]
        assert port.startswith("served by the qmsup that runs")
        assert box.chat("tiny").status_code == 200, "looking ended nothing"


def test_what_a_killed_box_left_is_found_and_the_next_one_goes_on_with_it() -> None:
    with serving({"other": fake("--name other")}) as box:
        assert box.chat("other").status_code == 200
        child = box.model("other")["pid"]
        serve, before = box.process.pid, box.told("status")
        os.kill(serve, signal.SIGSTOP)  # so that it starts no other
        os.kill(before["pid"], signal.SIGKILL)

        _, found = findings(box)

        os.kill(serve, signal.SIGCONT)
        box.until_next_scheduler(before)
        until(
            lambda: (
                said(findings(box)[1], "children") == {"ok": "belong to the scheduler that runs"}
            )
        )
        [left] = [f for f in found if f["check"] == "children"]
        assert (left["grade"], left["about"]) == ("warn", f"pid {child}")
