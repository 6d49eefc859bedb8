"""The GPUs and the machine's memory: what can be read of them, and whether it can be told who uses what."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from qmsup.core.vram.sample import Card, Ram, Sample
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.ids import ModelId
from qmsup.processes import leftovers, procfs
from qmsup.spec import Spec
from qmsup.telemetry.reading import Reader
from qmsup.telemetry.visible import VARIABLE
from qmsup.units import MiB, Seconds

_check = Check("gpu")
_memory = Check("memory")

_PATIENCE = Seconds(10.0)
_WALK = Seconds(5.0)
"""Work for a walk over all processes there are, of which the models' are the youngest."""
_PROC = Path("/proc")
_RENDER_NODES = Path("/dev/dri")
_NVIDIAS = ("GPU-", "MIG-")
"""How the ids of NVIDIA's cards, and of their parts, begin."""
_STATIC = "budgets are then held to the estimates alone, whatever else runs on the card"


def look(box: Box) -> Iterator[Finding]:
    """The cards, one by one; what was in the way of reading them; the machine's memory."""
    with _overheard() as told:
        sample = _read()
    if sample is None:
        yield _check.bad(
            "driver",
            f"it has not answered for {_PATIENCE:g} s",
            "look whether nvidia-smi or rocm-smi answer; a driver that hangs wants a restart of the box",
        )
        return
    for record in told:
        fields = getattr(record, "qmsup_fields", {})
        yield _check.warn(
            str(fields.get("card", "driver")),
            f"it cannot be read: {fields.get('because', record.getMessage())}",
            str(fields.get("hint") or f"see the driver's own log; {_STATIC}"),
        )
    if not sample.cards and not told:
        yield _check.ok("none", "no GPU that can be read is here: models run on the CPU")
    yield from of_sample(sample, box.spec)
    yield from _of_children(sample, box.spec)
    yield from _of_render_nodes()


def of_sample(sample: Sample, spec: Spec | None) -> Iterator[Finding]:
    """What there is to say of one look at the memory."""
    for card in sample.cards:
        yield _of_card(card, sample)
    yield from _of_budget(spec, sample)
    if sample.ram is not None:
        yield _of_ram(sample.ram, spec)


def _of_card(card: Card, sample: Sample) -> Finding:
    used = "its use cannot be read" if card.used is None else f"{card.used} MiB in use"
    says = f"{card.total} MiB, {used}"
    if card.used is None:
        return _check.warn(
            card.name, says, f"look whether the driver's own tool can read it; {_STATIC}"
        )
    if not card.has_processes:
        return _check.warn(
            card.name,
            f"{says}, but not by whom: what others use cannot be told from what the models do",
            f"run qmsup outside of the container, or with rights to see all processes{_aside(card, sample)}; {_STATIC}",
        )
    uses = [use for use in sample.uses if use.card == card.uuid]
    if uses and not any((_PROC / str(use.pid)).exists() for use in uses):
        return _check.warn(
            card.name,
            f"{says}, but by processes that are not to be seen here",
            f"run the container with --pid=host, so that the models can be told apart; {_STATIC}",
        )
    if uses and all(use.used is None for use in uses):
        return _check.warn(
            card.name,
            f"{says}, but not how much by which process",
            f"some drivers never tell (WSL, vGPU); {_STATIC}",
        )
    told = sum(use.used is not None for use in uses)
    return _check.ok(card.name, f"{says}, by {told} processes that can be told apart")


def _aside(card: Card, sample: Sample) -> str:
    """What helps where an old card, for the screen, darkens what is read of the one that models use."""
    is_nvidias = card.uuid.startswith(_NVIDIAS)
    others = [each for each in sample.cards if each is not card and each.has_processes]
    return f"; or hide it with {VARIABLE}, if no model uses it" if is_nvidias and others else ""


def _of_budget(spec: Spec | None, sample: Sample) -> Iterator[Finding]:
    budget = None if spec is None else spec.vram_budget
    total = MiB(sum(card.total for card in sample.cards))
    if budget and sample.cards and budget > total:
        yield _check.warn(
            "vramBudgetGB",
            f"it is {budget} MiB, and the cards have {total} MiB together",
            "lower it: what is loaded over the cards' size fails",
        )


def _of_children(sample: Sample, spec: Spec | None) -> Iterator[Finding]:
    """Whether the models that run now are seen on a card: only then is what others use told from what they do."""
    if not any(card.has_processes for card in sample.cards):
        return
    seen = {use.pid for use in sample.uses if use.used is not None}
    sessions = {stat.session for stat in procfs.all_stats() if stat.pid in seen}
    running = [record for record in leftovers.look().owned if record.pid]
    unseen = [r.model for r in running if r.pid not in sessions and _is_on_gpu(r.model, spec)]
    if unseen:
        yield _check.warn(
            "models",
            f"run, and are seen on no card: {', '.join(unseen)}",
            f"well if they run on the CPU (pool: ram says so), or load just now; else {_STATIC}",
        )
    elif running:
        yield _check.ok(
            "models", f"that run and are seen on a card, or need not be: {len(running)}"
        )


def _is_on_gpu(name: str, spec: Spec | None) -> bool:
    """Whether the configuration has it take GPU memory."""
    model = None if spec is None else spec.models.get(ModelId(name))
    return model is not None and bool(model.est_vram)


def _of_render_nodes() -> Iterator[Finding]:
    """The devices of AMD's and Intel's cards, which belong to a group of their own."""
    try:
        nodes = sorted(_RENDER_NODES.glob("render*"))
    except OSError:
        return
    for node in nodes:
        if not os.access(node, os.R_OK | os.W_OK):
            group = node.stat().st_gid
            yield _check.warn(
                str(node),
                f"user {os.getuid()} may not use it, so Vulkan and ROCm do not see that card",
                f"add the user to its group (usermod -aG {group} USER; most often `render`)",
            )


def _of_ram(ram: Ram, spec: Spec | None) -> Finding:
    says = f"{ram.total} MiB, {ram.available} MiB to be had"
    budget = None if spec is None else spec.ram_budget
    if budget and budget > ram.total:
        return _memory.warn(
            "ramBudgetGB",
            f"it is {budget} MiB, and there are {ram.total} MiB (a container's limit counts)",
            "lower it: the kernel ends what goes beyond",
        )
    return _memory.ok("ram", says)


def _read() -> Sample | None:
    """A sample; None when the driver does not answer, and its thread is left to itself."""
    found: list[Sample] = []
    thread = threading.Thread(target=lambda: found.append(_sample()), daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return found[0] if found else None


def _sample() -> Sample:
    reader = Reader(patience=_WALK)
    try:
        return reader.read()
    finally:
        reader.close()


class _Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[logging.LogRecord] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record)


@contextmanager
def _overheard() -> Iterator[list[logging.LogRecord]]:
    """What the reading warns of, for the findings instead of a log."""
    log, ear = logging.getLogger("qmsup.telemetry"), _Ear()
    before = log.propagate
    log.addHandler(ear)
    log.propagate = False
    try:
        yield ear.told
    finally:
        log.propagate = before
        log.removeHandler(ear)
