"""Models that are larger than the budget for all of them together.

That is no mistake: such a model is loaded all the same, with everything stopped that may stop for it, unless the card
was read and has no such room. But it is seldom what was meant, so it is said.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from qmsup.config.problems import Problems
from qmsup.errors import key_text
from qmsup.ids import ModelId
from qmsup.spec import Pool, Spec
from qmsup.units import MiB

_MIB_PER_GB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversize:
    """A model that no budget has room for.

    Attributes:
        key: of the model, and `budget_key` of the file: which two do not go together.
        size, budget: what they say.
    """

    model: ModelId
    key: str
    size: MiB
    budget_key: str
    budget: MiB

    @property
    def says(self) -> str:
        """What is odd, and what comes of it."""
        head = f"{_gb(self.size)} GB is more than {self.budget_key}, {_gb(self.budget)} GB"
        if self.key == "estRamGB":
            return f"{head}: all of the RAM pool that may stop does for it, and it is loaded all the same"
        return (
            f"{head}: all others that may stop do for it, and it is loaded over the budget,"
            " or refused (507) where the card was read and has no such room"
        )

    @property
    def advice(self) -> str:
        """What to do."""
        what = "or what the model takes (-c, -ngl)" if self.key == "estVramGB" else "if it is less"
        return f"lower models.{key_text(self.model)}.{self.key}, {what}, or raise {self.budget_key}"


def oversize(spec: Spec) -> Iterator[Oversize]:
    """In the order of the file. A matrix knows no budget, so by one nothing is too large."""
    if spec.matrix is not None:
        return
    in_ram = {model for group in spec.groups if group.pool is Pool.RAM for model in group.members}
    for model in spec.models.values():
        if spec.vram_budget and model.id not in in_ram and model.est_vram > spec.vram_budget:
            yield Oversize(
                model=model.id,
                key="estVramGB",
                size=model.est_vram,
                budget_key="vramBudgetGB",
                budget=spec.vram_budget,
            )
        if spec.ram_budget and in_ram and model.est_ram > spec.ram_budget:
            yield Oversize(
                model=model.id,
                key="estRamGB",
                size=model.est_ram,
                budget_key="ramBudgetGB",
                budget=spec.ram_budget,
            )


def remark_on_sizes(spec: Spec, problems: Problems) -> None:
    """Note them at their keys."""
    for model in oversize(spec):
        problems.remark(("models", model.model, model.key), f"{model.says}; {model.advice}")


def _gb(size: MiB) -> str:
    return f"{size / _MIB_PER_GB:g}"
