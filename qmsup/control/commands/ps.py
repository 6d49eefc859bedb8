"""`qmsup ps`: the models, what they use and what they do."""

import click

from qmsup.control import options, table
from qmsup.control.table import Column
from qmsup.wire import bodies, codec

_COLUMNS = (
    Column("NAME"),
    Column("STATE"),
    Column("PID", is_number=True),
    Column("PORT", is_number=True),
    Column("VRAM", is_number=True),
    Column("RAM", is_number=True),
    Column("CTX", is_number=True),
    Column("INFLIGHT", is_number=True),
    Column("QUEUED", is_number=True),
    Column("HOLD", is_number=True),
    Column("TTL", is_number=True),
    Column("AGE", is_number=True),
)
_SIZES = (
    Column("NAME"),
    Column("ESTIMATE", is_number=True),
    Column("MEASURED", is_number=True),
    Column("PEAK", is_number=True),
)
"""A table of its own, shown once anything was measured."""


@click.command("ps")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Show the models, what they use and what they do.

    A model that is `draining` is ready, ends what it has, and takes nothing new: it is being unloaded, is out of the
    configuration, or has to make room for who has waited long. HOLD is how much longer a model is kept for a client
    that is likely to come back, or that it is pinned; TTL the idle time left before it is unloaded. VRAM is what a
    model is charged. Once any was measured, a second table tells its parts: the configuration's ESTIMATE, what was
    MEASURED and counts from then on, and the PEAK of the
    child that runs.
    """
    answer = options.ask("ps", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    ps = codec.read_body(answer, bodies.Ps)
    table.show(_COLUMNS, [_row(model) for model in ps.models])
    notes = [options.DRAINING] if ps.draining else []
    notes += [f"{model.name}: {model.error}" for model in ps.models if model.error]
    if ps.vram_budget_mib is not None:
        notes.append(f"VRAM budget {table.memory(ps.vram_budget_mib)}")
    notes += _of_memory(ps.memory)
    if notes:
        click.echo("\n" + "\n".join(notes))
    sizes = [_sizes(model) for model in ps.models if _is_measured(model)]
    if sizes:
        click.echo()
        table.show(_SIZES, sizes)


def _of_memory(memory: bodies.Memory) -> list[str]:
    """What is used of the GPUs, and by whom; nothing where there are none."""
    if memory.total_mib is None:
        return []
    used = f"{table.memory(memory.used_mib)} of {table.memory(memory.total_mib)} GPU memory in use"
    if not memory.is_trusted:
        return [f"{used}; budgets alone count: {memory.because}"]
    ours, foreign = table.memory(memory.ours_mib), table.memory(memory.foreign_mib)
    floor, ceiling = table.memory(memory.floor_mib), table.memory(memory.ceiling_mib)
    return [f"{used}: {ours} by models, {foreign} by others (at rest {floor}); ceiling {ceiling}"]


def _is_measured(model: bodies.Model) -> bool:
    return model.vram_measured_mib is not None or model.vram_peak_mib is not None


def _sizes(model: bodies.Model) -> tuple[str, ...]:
    return (
        model.name,
        table.memory(model.vram_estimated_mib),
        table.memory(model.vram_measured_mib),
        table.memory(model.vram_peak_mib),
    )


def _row(model: bodies.Model) -> tuple[str, ...]:
    return (
        model.name,
        "draining" if model.closing else model.state,
        table.text_of(model.pid),
        table.text_of(model.port),
        table.memory(model.vram_mib),
        table.memory(model.ram_mib),
        table.text_of(model.ctx),
        table.text_of(model.inflight),
        table.text_of(model.queued),
        "pinned" if model.pinned else table.duration(model.hold_s),
        table.duration(model.ttl_s),
        table.duration(model.age_s),
    )
