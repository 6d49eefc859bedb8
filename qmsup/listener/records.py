"""A model as `/v1/models` tells of it: OpenAI's fields, and those that clients of llama-swap and OpenRouter read."""

import json

from qmsup.ids import ModelId, RouteName
from qmsup.spec import Abilities, ModelSpec

Record = dict[str, object]

_ALWAYS_OURS = ("architecture", "capabilities", "supported_parameters", "context_length")
"""Fields that the operator's own metadata does not repeat."""


def record_of(model: ModelSpec, *, created: int, owner: str, is_loaded: bool | None) -> Record:
    """One model's record.

    Args:
        model: as configured.
        created: Unix time.
        owner: who serves it.
        is_loaded: None = nobody knows, and then nothing is said.
    """
    record: Record = {"id": model.id, "object": "model", "created": created, "owned_by": owner}
    if model.name:
        record["name"] = model.name
    if model.description:
        record["description"] = model.description
    abilities = _abilities(model.abilities)
    record |= abilities
    told: Record = {"type": "model"}
    if model.aliases:
        told["aliases"] = list(model.aliases)
    meta: Record = {"llamaswap": _metadata(model, abilities) | told}
    if model.abilities.context:
        meta["n_ctx"] = model.abilities.context
    record["meta"] = meta
    if is_loaded is not None:
        record["status"] = {"value": "loaded" if is_loaded else "unloaded"}
    return record


def record_of_alias(alias: str, model: ModelSpec, record: Record) -> Record:
    """The record of another name, made from its model's."""
    meta = record["meta"]
    assert isinstance(meta, dict)
    told: Record = {"type": "alias", "modelID": model.id}
    kept = {k: v for k, v in meta["llamaswap"].items() if k not in ("type", "aliases")}
    return {**record, "id": alias, "meta": {**meta, "llamaswap": kept | told}}


def record_of_route(route: RouteName, model: ModelId, record: Record) -> Record:
    """The record of a route that is used as a model, made from that of the model it stands for, or of none."""
    meta = record.get("meta")
    told: Record = {"type": "route", "modelID": model}
    if isinstance(meta, dict):
        kept = {k: v for k, v in meta["llamaswap"].items() if k not in ("type", "aliases")}
        meta = {**meta, "llamaswap": kept | told}
    # Whether it is loaded somewhere is the scheduler's to know, and changes with the host.
    about = {k: v for k, v in record.items() if k not in ("status", "name", "description")}
    return {**about, "id": route, "meta": meta or {"llamaswap": told}}


def _metadata(model: ModelSpec, abilities: Record) -> Record:
    metadata: Record = json.loads(model.metadata) if model.metadata else {}
    return {k: v for k, v in metadata.items() if not (abilities and k in _ALWAYS_OURS)}


def _abilities(abilities: Abilities) -> Record:
    takes, gives = abilities.takes, abilities.gives
    told: Record = {}
    architecture: Record = {}
    if takes:
        architecture["input_modalities"] = list(takes)
    if gives:
        architecture["output_modalities"] = list(gives)
    if takes and gives:
        architecture["modality"] = f"{'+'.join(takes)}->{'+'.join(gives)}"
    if architecture:
        told["architecture"] = architecture
    can = {name: True for name, holds in _flags(abilities).items() if holds}
    if can or architecture:
        told["capabilities"] = can
    if abilities.tools:
        told["supported_parameters"] = ["tools", "tool_choice"]
    if abilities.context:
        told["context_length"] = abilities.context
    return told


def _flags(abilities: Abilities) -> dict[str, bool]:
    takes, gives = frozenset(abilities.takes), frozenset(abilities.gives)
    return {
        "vision": "image" in takes,
        "audio_transcriptions": "audio" in takes and "text" in gives,
        "audio_speech": "text" in takes and "audio" in gives,
        "image_generation": "text" in takes and "image" in gives,
        "image_to_image": "image" in takes and "image" in gives,
        "function_calling": abilities.tools,
        "reranker": abilities.reranker,
    }
