"""Names of models, as a trace or the command line has them: whether they are configured, and what to say if not."""

from collections.abc import Mapping
from pathlib import Path

from qmsup.core.scheduling.unknown import near_names, peer_of
from qmsup.spec import Spec

_MOST = 12
"""Names of models that are told."""


def what_is_wrong(name: str, specs: Mapping[Path, Spec]) -> str | None:
    """Why a model cannot be asked for in one of the configurations; None = it can in all of them."""
    said = ((file, why_unknown(name, spec)) for file, spec in specs.items())
    return next((f"{why} (in {file})" for file, why in said if why is not None), None)


def why_unknown(name: str, spec: Spec) -> str | None:
    """Why there is no such model for a scheduler to decide about; None = there is, by its id or an alias."""
    if spec.model_named(name) is not None:
        return None
    if (peer := peer_of(spec, name)) is not None:
        return f"{name!r} is the peer {peer}'s, and no scheduler of this box decides about it"
    aliases = (alias for model in spec.models.values() for alias in model.aliases)
    near = near_names(name, (*spec.models, *aliases), most=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {_listed(tuple(spec.models))}"
    return f"no model {name!r} is configured; {hint}"


def _listed(models: tuple[str, ...]) -> str:
    more = f" and {len(models) - _MOST} more" if len(models) > _MOST else ""
    return f"{', '.join(models[:_MOST])}{more}" if models else "none"
