"""Jobs of the fake sd-server in a whole box: begun, asked for and waited for as a client would."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import requests

from tests.support.box import Box, until

FAKE_SD_SERVER = Path(__file__).parents[1] / "fakes" / "sd_server.py"


def renderer(flags: str = "", **keys: Any) -> dict[str, Any]:
    """A model entry whose child is the fake sd-server, with these flags of it."""
    command = f"{sys.executable} {FAKE_SD_SERVER} --listen-port ${{PORT}} {flags}"
    return {"cmd": command, "kind": "sd-server", "estVramGB": 3.0, **keys}


def begin(
    box: Box, model: str = "paint", *, kind: str = "img_gen", listener: str = "main", **fields: Any
) -> requests.Response:
    """Ask for a job; `seconds` says how long it takes."""
    body = {"model": model, "prompt": "a cat", **fields}
    return requests.post(box.url(f"/sdcpp/v1/{kind}", listener), json=body, timeout=60)


def job(box: Box, id_: str, listener: str = "main") -> dict[str, Any]:
    """How it stands."""
    answer = requests.get(box.url(f"/sdcpp/v1/jobs/{id_}", listener), timeout=20)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def cancel(box: Box, id_: str, listener: str = "main") -> requests.Response:
    """Have it given up."""
    return requests.post(box.url(f"/sdcpp/v1/jobs/{id_}/cancel", listener), timeout=40)


def finish(box: Box, id_: str, model: str = "paint") -> dict[str, Any]:
    """End what a model's server renders now, and wait for the end of the job that it is; its last document."""
    until(lambda: job(box, id_)["status"] == "generating")
    os.kill(box.model(model)["pid"], signal.SIGUSR1)
    return until_over(box, id_)


def until_over(box: Box, id_: str, within: float = 20.0) -> dict[str, Any]:
    """Its last document."""

    def look() -> dict[str, Any] | None:
        document = job(box, id_)
        return document if document["status"] in {"completed", "failed", "cancelled"} else None

    return until(look, within=within, what=f"the end of {id_}") or {}


def leases_of_jobs(box: Box) -> list[dict[str, Any]]:
    """The leases that jobs hold now."""
    return [lease for lease in box.told("leases")["leases"] if lease["kind"] == "job"]
