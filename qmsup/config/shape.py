"""The keys of a configuration, their types, bounds and defaults: the one place they are written down.

The models here check shape alone, and JSON Schema is made from them; what keys mean together is in `meaning`.
A field has its default here, so that a wrong key can be set aside and the rest still be examined.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from qmsup.config.control import CONTROL, ControlSection
from qmsup.config.fleet_shape import FLEET, HostSection, PeerSection, RouteSection, fleet_place
from qmsup.config.foreign import FOREIGN, ForeignKeys, foreign_place
from qmsup.config.model_shape import CapabilitiesSection, FiltersSection, ModelSection
from qmsup.config.section import (
    Flag,
    Gigabytes,
    Macros,
    Millis,
    Seconds,
    Section,
    SomeMillis,
    SomeSeconds,
    Text,
    Texts,
    nothing_is_empty,
    text_of,
)


class KeySection(Section):
    """A key that clients send. Text alone is one that may everything."""

    key: Text = Field(default="", repr=False, description="as it is sent, or sha256:HEX of it")
    name: Text = Field(default="", description="what the activity calls it")
    models: list[Text] | None = Field(
        default=None, description="it may be used for; default: every model of the port"
    )
    admin: Flag | None = Field(
        default=None,
        description="may load, unload, lease and reload; default: unless models are named",
    )


def _bare_key(value: object) -> object:
    # A number is taken for a key here as everywhere; a mapping says more than a key.
    text = text_of(value)
    return {"key": text} if isinstance(text, str) else value


Key = Annotated[KeySection, BeforeValidator(_bare_key, json_schema_input_type=str | KeySection)]


class ListenerSection(Section):
    """One port with a catalogue of its own."""

    bind: Text = Field(
        default="127.0.0.1:8080", description="HOST:PORT; an IPv6 address in brackets"
    )
    workers: int = Field(default=2, ge=1, le=256, description="processes")
    groups: list[Text] | None = Field(
        default=None, description="shows their members; default: every model, those of peers too"
    )
    routes: list[Text] | None = Field(
        default=None, description="serves these of routes; default: all of them"
    )
    api_keys: list[Key] | None = Field(
        default=None, repr=False, description="default: those of the top level"
    )


class SchedulerSection(Section):
    """How requests wait."""

    line_max: int = Field(
        default=2048, ge=1, le=1_000_000, description="requests that may wait at once"
    )
    offer_timeout_ms: SomeMillis = Field(
        default=5000.0,
        description="a grant that its listener does not take up within so long goes to the next",
    )
    listener_grace_ms: Millis = Field(
        default=30_000.0,
        description="what a listener's worker uses is kept so long for it when it is not heard from",
    )
    hold_ms: Millis = Field(
        default=10_000.0,
        description="an idle model is kept for a conversation that may come back; 0 = never",
    )
    hold_on: Literal["tool_calls", "always"] = Field(
        default="tool_calls", description="after which answers it is kept"
    )
    patience_ms: Millis = Field(
        default=300_000.0,
        description="how long a waiter respects that and busy models; 0 = not at all",
    )
    lend_ms: Annotated[Millis, Field(le=1000.0)] = Field(
        default=50.0,
        description="short requests of a listener share a grant for so long, while nobody waits; 0 = never",
    )
    settle_ms: Millis = Field(
        default=3000.0,
        description="a load waits so long at most for GPU memory that stopped models give back",
    )
    priority: Annotated[dict[str, int], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="model → priority; a higher one goes first, default 0"
    )


class GroupSection(Section):
    """Which models make room for which."""

    members: Texts = Field(default_factory=list, description="models")
    swap: Flag = Field(default=True, description="one member at a time")
    exclusive: Flag = Field(default=True, description="loading a member stops other groups")
    persistent: Flag = Field(default=False, description="other groups never stop its members")
    pool: Literal["vram", "ram"] = Field(
        default="vram", description="ram: models on the CPU, which make room for each other alone"
    )


class MatrixSection(Section):
    """Which models may run together, set by set; instead of groups."""

    vars: Annotated[dict[str, Text], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="short name → model"
    )
    evict_costs: Annotated[
        dict[str, Annotated[int, Field(gt=0, le=1_000_000_000)]], nothing_is_empty(dict)
    ] = Field(
        default_factory=dict, alias="evict_costs", description="name → cost of a stop, default 1"
    )
    sets: Annotated[dict[str, Text], nothing_is_empty(dict)] = Field(
        default_factory=dict,
        description="name → names joined by & (together) and | (one of them), ( ), +other set",
    )


class StartupSection(Section):
    """What is done once the scheduler has started."""

    preload: Texts = Field(default_factory=list, description="models to load, in this order")


class HooksSection(Section):
    """What is done when something happens."""

    on_startup: StartupSection = Field(
        default_factory=StartupSection, alias="on_startup", description="once the scheduler runs"
    )


class Shape(ForeignKeys):
    """The whole file."""

    models: Annotated[dict[str, ModelSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="name, which clients ask for → what serves it"
    )
    groups: Annotated[dict[str, GroupSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="which models make room for which"
    )
    matrix: Annotated[MatrixSection | None, nothing_is_empty(dict)] = Field(
        default=None, description="instead of groups"
    )
    listeners: Annotated[dict[str, ListenerSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="default: main, 127.0.0.1:8080, every model"
    )
    peers: Annotated[dict[str, PeerSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="other servers, for models that are not here"
    )
    hosts: Annotated[dict[str, HostSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="machines that routes choose from"
    )
    routes: Annotated[dict[str, RouteSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="a name, or a template such as agent-*, for /route/NAME/"
    )
    scheduler: SchedulerSection = Field(
        default_factory=SchedulerSection, description="how requests wait"
    )
    control: ControlSection | None = Field(
        default=None, description="control over TCP, beside the socket that is always there"
    )
    hooks: HooksSection = Field(
        default_factory=HooksSection, description="what is done when something happens"
    )
    macros: Macros = Field(default_factory=dict, description="${NAME} in the texts of this file")
    api_keys: Annotated[list[Key], nothing_is_empty(list)] = Field(
        default_factory=list, repr=False, description="empty = open"
    )
    vram_budget_gb: Gigabytes = Field(
        default=0.0,
        alias="vramBudgetGB",
        description="what models may use of the GPUs together; 0 = no budget",
    )
    ram_budget_gb: Gigabytes = Field(
        default=0.0,
        alias="ramBudgetGB",
        description="the same of RAM, with what GPU models offload; 0 = no budget",
    )
    oom_guard_reserve_gb: Gigabytes = Field(
        default=1.0,
        alias="oomGuardReserveGB",
        description="kept from new loads once other programs use more of the GPUs than they did",
    )
    oom_guard_grace_ms: Millis = Field(
        default=30_000.0,
        description="so long models may hold more than others leave before idle ones are unloaded",
    )
    oom_guard_evict: Flag = Field(default=True, description="whether they are unloaded then")
    start_port: int = Field(default=5800, ge=1, le=65_535, description="the first ${PORT} tried")
    on_exit: Literal["keep", "stop"] = Field(
        default="stop", description="what becomes of the models when the scheduler ends"
    )
    include_aliases_in_list: Flag = Field(
        default=False, description="whether /v1/models lists aliases as models of their own"
    )
    send_loading_state: Flag = Field(
        default=False,
        description="comments (`: qm-status: loading`) in a stream say that it waits; chats seldom show them",
    )
    loading_remarks: Flag = Field(
        default=True, description="some of these comments are in a lighter tone"
    )
    health_check_timeout: SomeSeconds = Field(
        default=120.0, description="in seconds; a model that takes longer to be ready is ended"
    )
    unload_timeout: Seconds = Field(default=10.0, description="in seconds; from TERM to KILL")
    global_ttl: Seconds = Field(
        default=0.0,
        alias="globalTTL",
        description="seconds; the ttl of models that say none, 0 = never",
    )
    max_body_mb: float = Field(
        default=256.0,
        alias="maxBodyMB",
        gt=0,
        le=1_000_000,
        description="a larger request is refused (413)",
    )
    scheduler_grace_ms: Millis = Field(
        default=15_000.0,
        description="requests wait so long for a scheduler that is away, then 503",
    )
    shutdown_drain_ms: Millis = Field(
        default=5000.0, description="at the end, requests under way have so long to finish"
    )
    log_level: Literal["debug", "info", "warn", "warning", "error"] = Field(
        default="info", description="the least that is written"
    )
    log_format: Literal["auto", "text", "json"] = Field(
        default="auto", description="auto: text on a terminal, else json"
    )
    access_log: Flag = Field(default=True, description="a line for each request")


SECTIONS: Mapping[str, type[Section]] = {
    "": Shape,
    "models.NAME": ModelSection,
    "models.NAME.capabilities": CapabilitiesSection,
    "models.NAME.filters": FiltersSection,
    "groups.NAME": GroupSection,
    "matrix": MatrixSection,
    "listeners.NAME": ListenerSection,
    "apiKeys": KeySection,
    "scheduler": SchedulerSection,
    "hooks": HooksSection,
    "hooks.on_startup": StartupSection,
    **CONTROL,
    **FLEET,
    **FOREIGN,
}
"""Every place with known keys."""


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """The keys a section knows, as they are written."""
    return tuple(f.alias or name for name, f in section.model_fields.items())


def place_of(path: tuple[str | int, ...]) -> str:  # noqa: PLR0911 - a table
    """Which of `SECTIONS` a mapping at this path is; any other place is told as `-`."""
    match path:
        case ():
            return ""
        case ("scheduler" | "matrix" | "hooks" | "control" as section,):
            return section
        case ("apiKeys", int()) | ("listeners", str(), "apiKeys", int()):
            return "apiKeys"
        case (("hooks" | "control") as section, ("on_startup" | "curve") as below):
            return f"{section}.{below}"
        case ("models" | "groups" | "listeners" as section, str()):
            return f"{section}.NAME"
        case ("models", str(), "capabilities" | "filters" as section):
            return f"models.NAME.{section}"
        case _:
            return fleet_place(path) or foreign_place(path)
