"""The keys of a configuration, their types, bounds and defaults: the one place they are written down.

The models here check shape alone, and JSON Schema is made from them; what keys mean together is in `meaning`.
A field has its default here, so that a wrong key can be set aside and the rest still be examined.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_TEN_YEARS_S = 315_360_000


def _text(value: object) -> object:
    # Where text is wanted, a number is taken as it was written: a model may be called 4.10.
    return getattr(value, "text", value)


def _flag(value: object) -> object:
    words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


def _nothing_is_empty(kind: type) -> BeforeValidator:
    # `models:` with nothing below it is null in YAML.
    return BeforeValidator(lambda value: kind() if value is None else value)


Text = Annotated[str, BeforeValidator(_text)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Seconds = Annotated[float, Field(ge=0, le=_TEN_YEARS_S, description="in seconds")]
SomeSeconds = Annotated[float, Field(gt=0, le=_TEN_YEARS_S, description="in seconds")]
Millis = Annotated[float, Field(ge=0, le=_TEN_YEARS_S * 1000, description="in milliseconds")]
SomeMillis = Annotated[float, Field(gt=0, le=_TEN_YEARS_S * 1000, description="in milliseconds")]
Gigabytes = Annotated[float, Field(ge=0, le=1_000_000, description="in GB of 1024 MiB")]
Texts = Annotated[list[Text], _nothing_is_empty(list)]
Params = Annotated[dict[str, object], _nothing_is_empty(dict)]
Macros = Annotated[dict[str, str | int | float | bool], _nothing_is_empty(dict)]


class Section(BaseModel):
    """A mapping with known keys in camelCase. Keys that start with `x-` are the operator's own."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        json_schema_extra={"patternProperties": {"^x-": {}}},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_own_keys(cls, value: object) -> object:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {k: v for k, v in value.items() if not str(k).startswith("x-")}
        return value


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
    text = _text(value)
    return {"key": text} if isinstance(text, str) else value


Key = Annotated[KeySection, BeforeValidator(_bare_key, json_schema_input_type=str | KeySection)]


class ListenerSection(Section):
    """One port with a catalogue of its own."""

    bind: Text = Field(
        default="127.0.0.1:8080", description="HOST:PORT; an IPv6 address in brackets"
    )
    workers: int = Field(default=2, ge=1, le=256, description="processes")
    groups: list[Text] | None = Field(
        default=None, description="shows their members; default: every model"
    )
    api_keys: list[Key] | None = Field(
        default=None, repr=False, description="default: those of the top level"
    )


class SchedulerSection(Section):
    """How requests wait."""

    line_max: int = Field(
        default=2048, ge=1, le=1_000_000, description="requests that may wait at once"
    )
    offer_timeout_ms: SomeMillis = 5000.0
    listener_grace_ms: Millis = 30_000.0
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
    settle_ms: Millis = Field(
        default=3000.0,
        description="a load waits so long at most for GPU memory that stopped models give back",
    )
    priority: Annotated[dict[str, int], _nothing_is_empty(dict)] = Field(
        default_factory=dict, description="model → priority; a higher one goes first, default 0"
    )


class CapabilitiesSection(Section):
    """What a model is good for."""

    out: Annotated[
        list[Literal["text", "image", "video", "audio", "embedding"]], _nothing_is_empty(list)
    ] = Field(
        default_factory=list,
        description="image or video: nothing but its like is loaded while it works",
    )


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
    set_params_by_id: Annotated[dict[str, Params], _nothing_is_empty(dict)] = Field(
        default_factory=dict,
        alias="setParamsByID",
        description="name a client uses → key → value, over setParams; a new name is an alias",
    )


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
    name: Text = ""
    description: Text = ""
    aliases: Texts = Field(default_factory=list, description="other names clients may use")
    unlisted: Flag = Field(default=False, description="served, but not in /v1/models")
    env: Texts = Field(default_factory=list, description="KEY=value")
    proxy: Text = Field(
        default="", description="where the command listens; default http://127.0.0.1:${PORT}"
    )
    check_endpoint: Text = Field(
        default="",
        description="a path that answers 200 when ready, or none, tcp, or log:REGEX (a line of its log);"
        " default by kind",
    )
    concurrency_limit: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="requests at once; 0 = the command's -np, else by kind",
    )
    queue_max: int | None = Field(
        default=None, ge=0, le=1_000_000, description="requests that may wait"
    )
    est_vram_gb: Gigabytes = Field(default=0.0, alias="estVramGB")
    est_ram_gb: Gigabytes = Field(
        default=0.0,
        alias="estRamGB",
        description="all of it in the RAM pool, else what it offloads",
    )
    health_check_timeout: SomeSeconds | None = None
    unload_timeout: Seconds | None = None
    ttl: Annotated[float, Field(ge=-1, le=1e9)] = Field(
        default=-1.0,
        description="unloaded when idle for so many seconds; 0 = never, -1 = by globalTTL",
    )
    use_model_name: Text = Field(
        default="", description="what the child reads as the request's model"
    )
    capabilities: CapabilitiesSection = Field(default_factory=CapabilitiesSection)
    filters: FiltersSection = Field(default_factory=FiltersSection)
    macros: Macros = Field(default_factory=dict, description="over those of the top level")


class GroupSection(Section):
    """Which models make room for which."""

    members: Texts = Field(default_factory=list)
    swap: Flag = Field(default=True, description="one member at a time")
    exclusive: Flag = Field(default=True, description="loading a member stops other groups")
    persistent: Flag = Field(default=False, description="other groups never stop its members")
    pool: Literal["vram", "ram"] = Field(
        default="vram", description="ram: models on the CPU, which make room for each other alone"
    )


class MatrixSection(Section):
    """Which models may run together, set by set; instead of groups."""

    vars: Annotated[dict[str, Text], _nothing_is_empty(dict)] = Field(
        default_factory=dict, description="short name → model"
    )
    evict_costs: Annotated[
        dict[str, Annotated[int, Field(gt=0, le=1_000_000_000)]], _nothing_is_empty(dict)
    ] = Field(
        default_factory=dict, alias="evict_costs", description="name → cost of a stop, default 1"
    )
    sets: Annotated[dict[str, Text], _nothing_is_empty(dict)] = Field(
        default_factory=dict,
        description="name → names joined by & (together) and | (one of them), ( ), +other set",
    )


class StartupSection(Section):
    """What is done once the scheduler has started."""

    preload: Texts = Field(default_factory=list, description="models to load, in this order")


class HooksSection(Section):
    """What is done when something happens."""

    on_startup: StartupSection = Field(default_factory=StartupSection, alias="on_startup")


class Shape(Section):
    """The whole file."""

    models: Annotated[dict[str, ModelSection], _nothing_is_empty(dict)] = Field(
        default_factory=dict
    )
    groups: Annotated[dict[str, GroupSection], _nothing_is_empty(dict)] = Field(
        default_factory=dict
    )
    matrix: Annotated[MatrixSection | None, _nothing_is_empty(dict)] = Field(
        default=None, description="instead of groups"
    )
    listeners: Annotated[dict[str, ListenerSection], _nothing_is_empty(dict)] = Field(
        default_factory=dict, description="default: main, 127.0.0.1:8080, every model"
    )
    scheduler: SchedulerSection = Field(default_factory=SchedulerSection)
    hooks: HooksSection = Field(default_factory=HooksSection)
    macros: Macros = Field(default_factory=dict, description="${NAME} in the texts of this file")
    api_keys: Annotated[list[Key], _nothing_is_empty(list)] = Field(
        default_factory=list, repr=False, description="empty = open"
    )
    vram_budget_gb: Gigabytes = Field(
        default=0.0, alias="vramBudgetGB", description="0 = no budget"
    )
    ram_budget_gb: Gigabytes = Field(default=0.0, alias="ramBudgetGB", description="0 = no budget")
    oom_guard_reserve_gb: Gigabytes = Field(
        default=1.0,
        alias="oomGuardReserveGB",
        description="kept from new loads once other programs use more of the GPUs than they did",
    )
    oom_guard_grace_ms: Millis = Field(
        default=30_000.0,
        description="so long models may hold more than others leave before idle ones are unloaded",
    )
    oom_guard_evict: Flag = Field(default=True, description="whether they are")
    start_port: int = Field(default=5800, ge=1, le=65_535, description="the first ${PORT} tried")
    on_exit: Literal["keep", "stop"] = Field(
        default="stop", description="children, when the scheduler ends"
    )
    send_loading_state: Flag = False
    loading_remarks: Flag = True
    health_check_timeout: SomeSeconds = 120.0
    unload_timeout: Seconds = 10.0
    global_ttl: Seconds = Field(
        default=0.0,
        alias="globalTTL",
        description="seconds; the ttl of models that say none, 0 = never",
    )
    max_body_mb: float = Field(default=256.0, alias="maxBodyMB", gt=0, le=1_000_000)
    scheduler_grace_ms: Millis = 15_000.0
    shutdown_drain_ms: Millis = 5000.0
    log_level: Literal["debug", "info", "warn", "warning", "error"] = "info"
    log_format: Literal["auto", "text", "json"] = "auto"
    access_log: Flag = True


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
}
"""Every place with known keys."""


def keys_of(section: type[Section]) -> tuple[str, ...]:
    """The keys a section knows, as they are written."""
    return tuple(f.alias or name for name, f in section.model_fields.items())


def place_of(path: tuple[str | int, ...]) -> str:
    """Which of `SECTIONS` a mapping at this path is; any other place is told as `-`."""
    match path:
        case ():
            return ""
        case ("scheduler" | "matrix" | "hooks" as section,):
            return section
        case ("apiKeys", int()) | ("listeners", str(), "apiKeys", int()):
            return "apiKeys"
        case ("hooks", "on_startup"):
            return "hooks.on_startup"
        case ("models" | "groups" | "listeners" as section, str()):
            return f"{section}.NAME"
        case ("models", str(), "capabilities" | "filters" as section):
            return f"models.NAME.{section}"
        case _:
            return "-"
