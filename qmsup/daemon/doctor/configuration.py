"""Whether the configuration can be used."""

from collections.abc import Iterator

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
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
        yield _check.ok(about, f"good: models: {models}, listeners: {listeners}")
        yield from _sizes(box.spec)


def _sizes(spec: Spec) -> Iterator[Finding]:
    """Models that the GPU's budget cannot reckon with."""
    budget = spec.vram_budget
    if not budget or spec.matrix is not None:
        return
    in_ram = {model for group in spec.groups if group.pool is Pool.RAM for model in group.members}
    for model in spec.models.values():
        if model.id in in_ram:
            continue
        if not model.est_vram:
            yield _check.warn(
                model.id,
                "nothing says what it takes on the GPU: until it was measured, its group says what stops for it",
                f"give models.{model.id}.estVramGB, roughly",
            )
        elif model.est_vram > budget:
            yield _check.warn(
                model.id,
                f"it takes {model.est_vram} MiB, and vramBudgetGB is {budget} MiB: all others stop for it",
                f"lower models.{model.id}.estVramGB or what it takes (-c, -ngl), or raise the budget",
            )
