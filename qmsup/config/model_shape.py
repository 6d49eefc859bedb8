"""The keys of one model: the part of `qmsup.config.shape` that every file has most of."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from qmsup.config.foreign import NO_EFFECT, CompatSection, TimeoutsSection
from qmsup.config.section import (
    Flag,
    Gigabytes,
    Macros,
    Params,
    Seconds,
    Section,
    SomeSeconds,
    Text,
    Texts,
    nothing_is_empty,
)

Modalities = Annotated[
    list[Literal["text", "image", "video", "audio", "embedding"]], nothing_is_empty(list)
]


class CapabilitiesSection(Section):
    """What a model is good for: told in /v1/models."""

    in_: Modalities = Field(default_factory=list, alias="in", description="what it understands")
    out: Modalities = Field(
        default_factory=list,
        description="image or video: nothing but its like is loaded while it works",
    )
    tools: Flag = Field(default=False, description="it can call functions")
    reranker: Flag = Field(default=False, description="it ranks documents")
    context: int = Field(default=0, ge=0, le=1_000_000_000, description="in tokens; 0 = not told")


class FiltersSection(Section):
    """What is changed in JSON requests on their way to the command."""

    strip_params: Text = Field(
        default="",
        alias="stripParams",
        validation_alias=AliasChoices("stripParams", "strip_params"),  # older files have it so
        description="keys that are taken out, with commas between; never model",
    )
    set_params: Params = Field(
        default_factory=dict, description="key → value, set in every request; never model"
    )
    set_params_by_id: Annotated[dict[str, Params], nothing_is_empty(dict)] = Field(
        default_factory=dict,
        alias="setParamsByID",
        description="name a client uses → key → value, over setParams; a new name is an alias",
    )


def _alias(value: object) -> object:
    # Some files give an alias a name to show as well: its id is what clients write.
    return value.get("id", value) if isinstance(value, Mapping) else value


Alias = Annotated[Text, BeforeValidator(_alias)]


class ModelSection(Section):
    """One model and the command that serves it."""

    cmd: Text = Field(
        default="", description="split as a shell would, no shell runs; ${PORT} is a free port"
    )
    cmd_stop: Text = Field(
        default="",
        description="runs in place of TERM, for commands that have others do the work;"
        " ${PID} is the process of cmd",
    )
    kind: Literal["llama-server", "sd-server", "generic"] | None = Field(
        default=None, description="default: guessed from the command's name"
    )
    name: Text = Field(default="", description="told in /v1/models")
    description: Text = Field(default="", description="told in /v1/models")
    aliases: Annotated[list[Alias], nothing_is_empty(list)] = Field(
        default_factory=list, description="other names clients may use"
    )
    unlisted: Flag = Field(default=False, description="served, but not in /v1/models")
    env: Texts = Field(default_factory=list, description="KEY=value")
    proxy: Text = Field(
        default="", description="where the command listens; default http://127.0.0.1:${PORT}"
    )
    check_endpoint: Text = Field(
        default="",
        description="a path that answers 200 when ready, status:401 /PATH where another status says it, none, tcp,"
        " or log:REGEX (a line of its log); default by kind",
    )
    concurrency_limit: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="requests at once; 0 = the command's -np, else by kind",
    )
    queue_max: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="requests that may wait; default: no limit but lineMax",
    )
    est_vram_gb: Gigabytes = Field(
        default=0.0,
        alias="estVramGB",
        description="what it takes on the GPUs, until that was measured; 0 = not known: its group decides",
    )
    est_ram_gb: Gigabytes = Field(
        default=0.0,
        alias="estRamGB",
        description="what it takes of RAM: all of it with pool: ram, else what it offloads",
    )
    health_check_timeout: SomeSeconds | None = Field(
        default=None, description="in seconds; default: the top level's"
    )
    unload_timeout: Seconds | None = Field(
        default=None, description="in seconds, from TERM to KILL; 0 = the top level's"
    )
    ttl: Annotated[float, Field(ge=-1, le=1e9)] = Field(
        default=-1.0,
        description="unloaded when idle for so many seconds; 0 = never, -1 = by globalTTL",
    )
    use_model_name: Text = Field(
        default="", description="what the child reads as the request's model"
    )
    capabilities: CapabilitiesSection = Field(
        default_factory=CapabilitiesSection, description="what it is good for"
    )
    filters: FiltersSection = Field(
        default_factory=FiltersSection, description="what is changed in requests"
    )
    metadata: Params = Field(default_factory=dict, description="told in /v1/models as it stands")
    send_loading_state: Flag | None = Field(default=None, description="default: the top level's")
    timeouts: TimeoutsSection | None = Field(default=None, description=NO_EFFECT)
    compat: CompatSection | None = Field(default=None, description=NO_EFFECT)
    macros: Macros = Field(default_factory=dict, description="over those of the top level")
