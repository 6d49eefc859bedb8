"""The configurations under which histories are played."""

from dataclasses import replace

from qmsup.ids import ModelId
from qmsup.spec import AllOf, HoldOn, MatrixSpec, OnExit, SchedulerSpec, Spec
from qmsup.units import MiB, Seconds
from tests.support.scheduling import group, spec_of

_QUICK = SchedulerSpec(line_max=6, priority={ModelId("c"): 5}, patience=Seconds(8.0))
_A, _B, _C, _D = (ModelId(m) for m in "abcd")
_SIZES = {"a": 6, "b": 5, "c": 4, "d": 10}


def _with_ttl(spec: Spec, models: str) -> Spec:
    """These live for five seconds without work."""
    short = {ModelId(m): replace(spec.models[ModelId(m)], ttl=Seconds(5.0)) for m in models.split()}
    return replace(spec, models={**spec.models, **short})


SPECS: dict[str, Spec] = {
    "exclusive": spec_of("a b c d", slots=2, scheduler=_QUICK),
    "budget": spec_of("a b c d", slots=2, sizes=_SIZES, vram_budget=MiB(12), scheduler=_QUICK),
    "groups": spec_of(
        "a b c d",
        slots=1,
        groups=(group("g", "a b", swap=True, exclusive=False), group("p", "c", persistent=True)),
    ),
    "fewer": spec_of("a b", slots=3, sizes=_SIZES, vram_budget=MiB(11), scheduler=_QUICK),
    "studio": spec_of(
        "a b c d",
        sizes=_SIZES,
        vram_budget=MiB(16),
        renders="c d",
        scheduler=SchedulerSpec(
            hold=Seconds(3.0), hold_on=HoldOn.ALWAYS, patience=Seconds(5.0), line_max=12
        ),
    ),
    "gallery": spec_of(
        "a b c d",
        slots=2,
        renders="c d",
        groups=(
            group("g", "a b", exclusive=False),
            group("p", "c d", swap=False, exclusive=False),
        ),
        scheduler=_QUICK,
    ),
    "fleeting": _with_ttl(
        spec_of("a b c d", slots=2, sizes=_SIZES, vram_budget=MiB(16), scheduler=_QUICK), "a c"
    ),
    "fitting": spec_of(
        "a b c d", slots=2, fits="a c", sizes=_SIZES, vram_budget=MiB(21), scheduler=_QUICK
    ),
    "matrix": spec_of(
        "a b c d",
        slots=2,
        matrix=MatrixSpec(
            sets={
                "with b": AllOf((_B, _D)),
                "with a": AllOf((_A, _C, _D)),
                "without d": AllOf((_A, _B, _C)),
            },
            costs={_A: 2, _B: 3, _C: 2},
        ),
        scheduler=_QUICK,
    ),
    "kept": spec_of("a b c d", sizes=_SIZES, vram_budget=MiB(16), on_exit=OnExit.KEEP),
}
