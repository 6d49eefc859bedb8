"""Why a policy names these models and no others, in words with the numbers it decides by.

A policy is asked very often and answers with names alone. Here its answer is told to a person, who asks seldom.
"""

from collections.abc import Sequence

from qmsup.core.eviction.budget import BudgetPolicy
from qmsup.core.eviction.groups import GroupPolicy
from qmsup.core.eviction.matrix import MatrixPolicy
from qmsup.core.eviction.overload import mib
from qmsup.core.eviction.policy import EvictionPolicy
from qmsup.core.eviction.pools import PoolsPolicy
from qmsup.core.eviction.ram import RamPolicy
from qmsup.ids import ModelId
from qmsup.units import MiB


def reasons_for(
    policy: EvictionPolicy, target: ModelId, running: Sequence[ModelId]
) -> tuple[str, ...]:
    """Sentences: what decides, then one for each model that would have to stop.

    Args:
        policy: the one in force.
        target: the model that would be loaded.
        running: what is resident beside it, coldest first.
    """
    match policy:
        case BudgetPolicy():
            return _by_budget(policy, target, running)
        case GroupPolicy():
            return _by_groups(policy, target, running)
        case MatrixPolicy():
            return _by_matrix(policy, target, running)
        case PoolsPolicy():
            return _by_pools(policy, target, running)
        case _:
            victims = policy.eviction_for(target, running)
            return (f"the policy {policy.name!r} stops {_listed(victims)}",)


def _by_budget(
    policy: BudgetPolicy, target: ModelId, running: Sequence[ModelId]
) -> tuple[str, ...]:
    need = policy.needs.get(target, MiB(0))
    if not need:
        return (
            f"{target} has no known size (estVramGB), so its group decides",
            *_by_groups(policy.fallback, target, running),
        )
    charges = {model: policy.charge_of(model) for model in running}
    head = [f"{target} needs {mib(need)}; {_used(charges, policy.limit, 'VRAM')}"]
    if policy.limit < policy.budget:
        head.append(f"the card leaves {mib(policy.limit)} of the budget of {mib(policy.budget)}")
    head += [_staying(policy, model) for model in running if model in policy.persistent]
    victims = policy.eviction_for(target, running)
    return (*head, *_going(target, need, charges, victims, policy.limit))


def _staying(policy: BudgetPolicy, model: ModelId) -> str:
    if model in policy.fallback.pinned:
        return f"{model} stays: an operator has pinned it"
    return f"{model} stays: its group is persistent"


def _by_groups(policy: GroupPolicy, target: ModelId, running: Sequence[ModelId]) -> tuple[str, ...]:
    group = policy.group_of(target)
    victims = policy.eviction_for(target, running)
    if not victims:
        return (f"{target} is in group {group.id}: nothing that runs has to stop for it",)
    return tuple(
        f"{victim} goes: it takes turns with {target} in group {group.id}"
        if policy.group_of(victim).id == group.id
        else f"{victim} goes: {target} is in group {group.id}, which runs alone (exclusive)"
        for victim in victims
    )


def _by_matrix(
    policy: MatrixPolicy, target: ModelId, running: Sequence[ModelId]
) -> tuple[str, ...]:
    victims = policy.eviction_for(target, running)
    if not victims:
        return (f"the matrix lets {target} run beside what runs",)
    if target not in policy.combinations:
        return (f"{target} is in no set of the matrix, so all go: {_listed(victims)}",)
    return (
        f"{_listed(victims)}: outside the cheapest combination of the matrix that holds {target}",
    )


def _by_pools(policy: PoolsPolicy, target: ModelId, running: Sequence[ModelId]) -> tuple[str, ...]:
    if target in policy.ram.pool:
        return _in_ram(policy.ram, target, running)
    on_gpu = [model for model in running if model not in policy.ram.pool]
    reasons = reasons_for(policy.gpu, target, on_gpu)
    gone = frozenset(policy.gpu.eviction_for(target, on_gpu))
    staying = [model for model in running if model not in gone]
    spilt = policy.ram.spill_for(target, staying)
    need = policy.ram.needs.get(target, MiB(0))
    limit = policy.ram.limit
    if limit is None or not need:
        return reasons
    charges = {model: policy.ram.charge_of(model) for model in staying}
    return (
        *reasons,
        f"{target} offloads {mib(need)}; {_used(charges, limit, 'RAM')}",
        *_tightened(policy.ram),
        *_going(target, need, charges, spilt, limit),
    )


def _in_ram(policy: RamPolicy, target: ModelId, running: Sequence[ModelId]) -> tuple[str, ...]:
    need = policy.needs.get(target, MiB(0))
    limit = policy.limit
    if limit is None or not need:
        why = "there is no ramBudgetGB" if limit is None else "its estRamGB is not known"
        in_pool = [model for model in running if model in policy.pool]
        return (
            f"{target} is in the RAM pool and {why}, so its group decides",
            *_by_groups(policy.fallback, target, in_pool),
        )
    charges = {model: policy.charge_of(model) for model in running}
    victims = policy.eviction_for(target, running)
    return (
        f"{target} needs {mib(need)}; {_used(charges, limit, 'RAM')}",
        *_tightened(policy),
        *_going(target, need, charges, victims, limit),
    )


def _tightened(policy: RamPolicy) -> tuple[str, ...]:
    budget, limit = policy.budget, policy.limit
    if budget is None or limit is None or limit >= budget:
        return ()
    return (f"the machine leaves {mib(limit)} of the budget of {mib(budget)}",)


def _used(charges: dict[ModelId, MiB], limit: MiB, kind: str) -> str:
    return f"{mib(MiB(sum(charges.values())))} of {mib(limit)} {kind} are in use"


def _going(
    target: ModelId,
    need: MiB,
    charges: dict[ModelId, MiB],
    victims: Sequence[ModelId],
    limit: MiB,
) -> tuple[str, ...]:
    if not victims:
        over = need + sum(charges.values()) - limit
        return (f"{target} fits beside what runs",) if over <= 0 else (_too_big(target, over),)
    told = [
        f"{victim} goes: the coldest of those left, it frees {mib(charges[victim])}"
        if charges[victim]
        else f"{victim} goes: its size is not known, so nothing can be reckoned with it"
        for victim in victims
    ]
    over = need + sum(size for model, size in charges.items() if model not in victims) - limit
    return (*told, _too_big(target, over)) if over > 0 else tuple(told)


def _too_big(target: ModelId, over: int) -> str:
    return f"even so {target} is {mib(MiB(over))} too large"


def _listed(models: Sequence[ModelId]) -> str:
    return ", ".join(models) or "nothing"
