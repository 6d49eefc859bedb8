"""By how much a load goes over a budget, though all that may stop for it has: what is pinned or persistent stays.

A policy says what has to go, not whether that is enough. It need not be: by a budget alone, without a reading of the
card, a model that cannot be made to fit is loaded all the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from typing_extensions import override

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.policy import EvictionPolicy
from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """More than a budget has room for.

    Attributes:
        kind: VRAM or RAM.
        over: so much more.
        limit: what there is for all models together.
        beside: what stays and is charged, each with why it does.
    """

    kind: str
    over: MiB
    limit: MiB
    beside: tuple[str, ...]

    @override
    def __str__(self) -> str:
        """`2 288 MiB over the 16 384 MiB of VRAM for models, beside a (pinned)`."""
        others = f"beside {', '.join(self.beside)}" if self.beside else "alone"
        return f"{mib(self.over)} over the {mib(self.limit)} of {self.kind} for models, {others}"


def overloads(
    policy: EvictionPolicy, target: ModelId, staying: Sequence[ModelId]
) -> tuple[Overload, ...]:
    """The budgets that a load goes over; () where none counts, or the size is not known.

    Args:
        policy: the one in force.
        target: the model that is loaded.
        staying: what runs beside it once everything has stopped that is to.
    """
    match policy:
        case BudgetPolicy():
            return tuple(_of_vram(policy, target, staying))
        case PoolsPolicy(gpu=gpu, ram=ram):
            in_ram = tuple(_of_ram(ram, target, staying))
            on_gpu = [model for model in staying if model not in ram.pool]
            if target in ram.pool or isinstance(gpu, GroupPolicy):
                return in_ram
            return (*_of_vram(gpu, target, on_gpu), *in_ram)
        case _:
            return ()


def mib(size: MiB) -> str:
    """`12 288 MiB`."""
    return f"{size:,} MiB".replace(",", " ")


def _of_vram(
    policy: BudgetPolicy, target: ModelId, staying: Sequence[ModelId]
) -> Iterator[Overload]:
    need = policy.needs.get(target, MiB(0))
    charges = {model: policy.charge_of(model) for model in staying}
    yield from _over("VRAM", need, charges, policy.limit, policy.fallback)


def _of_ram(policy: RamPolicy, target: ModelId, staying: Sequence[ModelId]) -> Iterator[Overload]:
    charges = {model: policy.charge_of(model) for model in staying}
    if policy.limit is not None:
        yield from _over("RAM", policy.need_of(target), charges, policy.limit, policy.fallback)


def _over(
    kind: str, need: MiB, charges: dict[ModelId, MiB], limit: MiB, groups: GroupPolicy
) -> Iterator[Overload]:
    over = need + sum(charges.values()) - limit
    if need and over > 0:
        beside = tuple(f"{model}{_why(model, groups)}" for model in charges if charges[model])
        yield Overload(kind=kind, over=MiB(over), limit=limit, beside=beside)


def _why(model: ModelId, groups: GroupPolicy) -> str:
    if model in groups.pinned:
        return " (pinned)"
    return " (persistent)" if groups.is_persistent(model) else ""
