"""Whether the configuration can be used."""

from collections.abc import Iterator

from qmsup.config import oversize
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.errors import key_text
from qmsup.spec import Pool, Spec

_check = Check("configuration")


def look(box: Box) -> Iterator[Finding]:
    """One finding, or one for each problem."""
    if box.config is None:
        yield _check.warn(
            "none",
            "no configuration was named, so only the box itself is looked at",
            "name it with -c FILE, or in QMSUP_CONFIG",
        )
        return
    about = str(box.config)
    for problem in box.problems:
        says = problem.removeprefix(f"{about}: ")
        if says.startswith(f"{about}:"):
            says = f"line {says.removeprefix(f'{about}:')}"
        yield _check.bad(about, says, "correct it; `qmsup check FILE` tells when it is good")
    if box.spec is not None:
        models, listeners = len(box.spec.models), len(box.spec.listeners)
        more = f"; notes: {box.remarks}, which `qmsup check` tells" if box.remarks else ""
        yield _check.ok(about, f"good: models: {models}, listeners: {listeners}{more}")
        yield from _sizes(box.spec)


def _sizes(spec: Spec) -> Iterator[Finding]:
    """Models that a budget cannot reckon with."""
    for model in oversize(spec):
        yield _check.warn(model.model, model.says, model.advice)
    if not spec.vram_budget or spec.matrix is not None:
        return
    in_ram = {model for group in spec.groups if group.pool is Pool.RAM for model in group.members}
    for unknown in spec.models.values():
        if not unknown.est_vram and unknown.id not in in_ram:
            yield _check.warn(
                unknown.id,
                "nothing says what it takes on the GPU: until it was measured, its group says what stops for it",
                f"give models.{key_text(unknown.id)}.estVramGB, roughly",
            )
