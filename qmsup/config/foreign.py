"""Keys of llama-swap's files that have no counterpart here, or a smaller one.

They are taken as they are, and `qmsup.config.remarks` tells what they mean here. What is in them is checked no
further than their keys and types.
"""

from typing import Annotated, Literal

from pydantic import Field

from qmsup.config.section import Flag, Params, Seconds, Section, Text, Texts, nothing_is_empty

NO_EFFECT = "llama-swap's; has no effect here"
"""What the schema says of such a key."""


class TimeoutsSection(Section):
    """Of connections to a child, which is on this box."""

    connect: Seconds | None = Field(default=None, description=NO_EFFECT)
    keepalive: Seconds | None = Field(default=None, alias="keepalive", description=NO_EFFECT)
    response_header: Seconds | None = Field(default=None, description=NO_EFFECT)
    tls_handshake: Seconds | None = Field(default=None, description=NO_EFFECT)
    expect_continue: Seconds | None = Field(default=None, description=NO_EFFECT)
    idle_conn: Seconds | None = Field(default=None, description=NO_EFFECT)


class CompatSection(Section):
    """How programs that are no model servers are treated."""

    ignore_websockets: Flag = Field(default=False, description=NO_EFFECT)


class SpilloverSection(Section):
    """When a selector would take its next model."""

    spillover: int = Field(default=1, ge=1, le=1_000_000, description=NO_EFFECT)


class SelectorSection(Section):
    """A name that stands for one of several models."""

    strategy: Literal["warm", "pin", "spillover"] = Field(default="pin", description=NO_EFFECT)
    targets: Texts = Field(default_factory=list, description="models; the first one is taken")
    settings: SpilloverSection | None = Field(default=None, description=NO_EFFECT)
    name: Text = Field(default="", description=NO_EFFECT)
    description: Text = Field(default="", description=NO_EFFECT)
    unlisted: Flag = Field(default=False, description=NO_EFFECT)
    metadata: Params = Field(default_factory=dict, description=NO_EFFECT)


class ProfileSection(Section):
    """Names that are replaced while the profile is the active one."""

    description: Text = Field(default="", description=NO_EFFECT)
    pins: Annotated[dict[str, Text | None], nothing_is_empty(dict)] = Field(
        default_factory=dict, description=NO_EFFECT
    )


class UpstreamSection(Section):
    """What `/upstream/…` does."""

    ignore_paths: Texts = Field(
        default_factory=list, description="regular expressions of paths that load no model"
    )


class PerformanceSection(Section):
    """How often the machine is looked at."""

    disabled: Flag = Field(default=False, description=NO_EFFECT)
    every: Text = Field(default="", description=NO_EFFECT)


class StoreSection(Section):
    """Where activity is kept."""

    path: Text = Field(default="", description=NO_EFFECT)


class ActivitySection(Section):
    """A page of the web interface."""

    session_id: Texts = Field(default_factory=list, alias="session_id", description=NO_EFFECT)


class UiSection(Section):
    """The web interface."""

    activity: ActivitySection | None = Field(default=None, description=NO_EFFECT)


class ForeignKeys(Section):
    """Those of them at the top level."""

    routing: Params = Field(
        default_factory=dict,
        description="router.settings.groups and .matrix, scheduler.settings.fifo.priority: taken for those here",
    )
    selectors: Annotated[dict[str, SelectorSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="each is another name of its first model here"
    )
    profiles: Annotated[dict[str, ProfileSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description=NO_EFFECT
    )
    upstream: UpstreamSection | None = Field(default=None, description="what /upstream/MODEL/ does")
    performance: PerformanceSection | None = Field(default=None, description=NO_EFFECT)
    store: StoreSection | None = Field(default=None, description=NO_EFFECT)
    ui: UiSection | None = Field(default=None, description=NO_EFFECT)
    log_to_stdout: Literal["proxy", "upstream", "both", "none"] | None = Field(
        default=None, description="the log goes to stderr; `qmsup logs` has the models'"
    )
    log_time_format: Text | None = Field(default=None, description=NO_EFFECT)
    metrics_max_in_memory: int | None = Field(default=None, ge=0, description=NO_EFFECT)
    capture_buffer: int | None = Field(default=None, ge=0, description=NO_EFFECT)


FOREIGN: dict[str, type[Section]] = {
    "models.NAME.timeouts": TimeoutsSection,
    "models.NAME.compat": CompatSection,
    "selectors.NAME": SelectorSection,
    "selectors.NAME.settings": SpilloverSection,
    "profiles.NAME": ProfileSection,
    "upstream": UpstreamSection,
    "performance": PerformanceSection,
    "store": StoreSection,
    "ui": UiSection,
    "ui.activity": ActivitySection,
}
"""Every place with known keys among them."""


def foreign_place(path: tuple[str | int, ...]) -> str:
    """Which of `FOREIGN` a mapping at this path is; any other place is told as `-`."""
    match path:
        case ("upstream" | "performance" | "store" | "ui" as section,):
            return section
        case ("ui", "activity"):
            return "ui.activity"
        case ("selectors" | "profiles" as section, str()):
            return f"{section}.NAME"
        case ("selectors", str(), "settings"):
            return "selectors.NAME.settings"
        case ("models", str(), "timeouts" | "compat" as section):
            return f"models.NAME.{section}"
        case _:
            return "-"
