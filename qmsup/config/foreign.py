"""Keys of llama-swap's files that have no counterpart here, or a smaller one.

They are taken as they are, and `qmsup.config.remarks` tells what they mean here. What is in them is checked no
further than their keys and types.
"""

from typing import Annotated, Literal

from pydantic import Field

from qmsup.config.section import Flag, Params, Seconds, Section, Text, Texts, nothing_is_empty


class TimeoutsSection(Section):
    """Of connections to a child, which is on this box."""

    connect: Seconds | None = None
    keepalive: Seconds | None = Field(default=None, alias="keepalive")
    response_header: Seconds | None = None
    tls_handshake: Seconds | None = None
    expect_continue: Seconds | None = None
    idle_conn: Seconds | None = None


class CompatSection(Section):
    """How programs that are no model servers are treated."""

    ignore_websockets: Flag = False


class SpilloverSection(Section):
    """When a selector would take its next model."""

    spillover: int = Field(default=1, ge=1, le=1_000_000)


class SelectorSection(Section):
    """A name that stands for one of several models."""

    strategy: Literal["warm", "pin", "spillover"] = "pin"
    targets: Texts = Field(default_factory=list)
    settings: SpilloverSection | None = None
    name: Text = ""
    description: Text = ""
    unlisted: Flag = False
    metadata: Params = Field(default_factory=dict)


class ProfileSection(Section):
    """Names that are replaced while the profile is the active one."""

    description: Text = ""
    pins: Annotated[dict[str, Text | None], nothing_is_empty(dict)] = Field(default_factory=dict)


class UpstreamSection(Section):
    """What `/upstream/…` does."""

    ignore_paths: Texts = Field(
        default_factory=list, description="regular expressions of paths that load no model"
    )


class PerformanceSection(Section):
    """How often the machine is looked at."""

    disabled: Flag = False
    every: Text = ""


class StoreSection(Section):
    """Where activity is kept."""

    path: Text = ""


class ActivitySection(Section):
    """A page of the web interface."""

    session_id: Texts = Field(default_factory=list, alias="session_id")


class UiSection(Section):
    """The web interface."""

    activity: ActivitySection | None = None


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
        default_factory=dict
    )
    upstream: UpstreamSection | None = None
    performance: PerformanceSection | None = None
    store: StoreSection | None = None
    ui: UiSection | None = None
    log_to_stdout: Literal["proxy", "upstream", "both", "none"] | None = None
    log_time_format: Text | None = None
    metrics_max_in_memory: int | None = Field(default=None, ge=0)
    capture_buffer: int | None = Field(default=None, ge=0)


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
