"""Whether a box is whole and quiet, as its scheduler and the kernel tell it."""

from typing import Any

import psutil

from qmsup.control.client import Client
from qmsup.errors import QmsupError
from scripts.soaking import census
from tests.support.box import Box

_STILL = {"ready", "stopped", "failed"}


def ask(box: Box, *verbs: str) -> list[Any]:
    """What the scheduler says to each of these.

    Raises:
        QmsupError: it says nothing, or not now.
    """
    with Client(f"ipc://{box.folder}/run/scheduler.sock") as client:
        return [client.ask(verb) for verb in verbs]


def unrest(box: Box, workers: int) -> list[str]:
    """What is still missing, under way or left over, one line each.

    Args:
        box: as it is now.
        workers: how many there are when it is whole.
    """
    try:
        status, ps, leases, queue = ask(box, "status", "ps", "leases", "queue")
    except QmsupError as error:
        return [f"the scheduler: {error}"]
    models = ps["models"]
    lines = [_words(model) for model in models if not _is_quiet(model)]
    lines += [f"lease {lease['lease']} on {lease['model']}" for lease in leases["leases"]]
    lines += [f"{waiting} waits" for waiting in (*queue["queue"], *queue["loading"])]
    there = [w["pid"] for w in status["listeners"] if psutil.pid_exists(w["pid"])]
    if len(there) != workers or len(status["listeners"]) != workers:
        lines.append(f"workers {there} of {workers}, and {len(status['listeners'])} are listed")
    return lines + census.strangers(box, [model["pid"] for model in models if model["pid"]])


def _is_quiet(model: dict[str, Any]) -> bool:
    return model["inflight"] == model["queued"] == 0 and model["state"] in _STILL


def _words(model: dict[str, Any]) -> str:
    return (
        f"{model['name']} {model['state']}, {model['inflight']} in flight, {model['queued']} wait"
    )
