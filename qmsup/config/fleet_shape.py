"""The keys of `peers:`, `hosts:` and `routes:`: other machines."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AliasChoices, Field

from qmsup.config.section import (
    Flag,
    Params,
    Seconds,
    Section,
    SomeSeconds,
    Text,
    Texts,
    nothing_is_empty,
)

Trust = Annotated[
    Text,
    Field(
        description="over https: a file of the certificates to trust in place of the system's, or anyone"
    ),
]


class PeerTimeoutsSection(Section):
    """How long a peer may take."""

    connect: SomeSeconds = Field(default=10.0, description="in seconds, until a connection stands")
    response_header: Seconds = Field(
        default=0.0,
        description="in seconds, from the request to the first byte of the answer; 0 = for ever",
    )
    tls_handshake: Seconds = Field(
        default=10.0, description="in seconds; over https, beside connect"
    )
    expect_continue: Seconds = Field(default=1.0, description="without meaning: never waited for")
    keepalive: Seconds = Field(
        default=0.0,
        alias="keepalive",
        description="without meaning: each request has its own connection",
    )
    idle_conn: Seconds = Field(default=90.0, description="without meaning, for the same reason")


class PeerFiltersSection(Section):
    """What is changed in JSON requests on their way to a peer."""

    strip_params: Text = Field(
        default="", description="keys that are taken out, with commas between; never model"
    )
    set_params: Params = Field(
        default_factory=dict, description="key → value, set in every request; never model"
    )


class PeerSection(Section):
    """Another machine's server, for models that there is no command for here."""

    proxy: Text = Field(default="", description="http[s]://HOST:PORT, perhaps with a path")
    trust: Trust = ""
    api_key: Text = Field(default="", repr=False, description="sent in place of the client's")
    models: Texts = Field(default_factory=list, description="as the peer calls them")
    filters: PeerFiltersSection = Field(
        default_factory=PeerFiltersSection, description="what is changed in requests"
    )
    timeouts: PeerTimeoutsSection = Field(
        default_factory=PeerTimeoutsSection, description="how long it may take"
    )


class HostModelSection(Section):
    """What a host takes of one model."""

    parallel: int = Field(default=1, ge=0, le=100_000, description="requests at once")
    queue_max: int = Field(default=0, ge=0, le=1_000_000, description="requests that may wait")


class HostSection(Section):
    """One of several machines that routes choose from: llama-server, its router, or qmsup."""

    url: Text = Field(default="", description="http[s]://HOST:PORT")
    trust: Trust = ""
    api_key: Text = Field(default="", repr=False, description="sent in place of the client's")
    weight: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        default=1.0, description="what a free slot is worth against another host's"
    )
    models: Annotated[dict[str, HostModelSection], nothing_is_empty(dict)] = Field(
        default_factory=dict, description="those it can load, as it calls them"
    )


class RouteSection(Section):
    """Requests that go to one of several hosts."""

    hosts: Texts = Field(default_factory=list, description="of hosts; local = this box")
    default_model: Text = Field(
        default="",
        alias="default_model",
        validation_alias=AliasChoices("default_model", "defaultModel"),
        description="of requests that name none",
    )
    peers: Texts = Field(
        default_factory=list, description="of peers; tried in order when no host can be used"
    )
    affinity: Text = Field(
        default="conversation",
        description="what stays on one host: each conversation, or (route) all of the route",
    )
    queue: Flag = Field(
        default=True, description="false: requests are counted, and never wait or are refused"
    )


FLEET: Mapping[str, type[Section]] = {
    "peers.NAME": PeerSection,
    "peers.NAME.filters": PeerFiltersSection,
    "peers.NAME.timeouts": PeerTimeoutsSection,
    "hosts.NAME": HostSection,
    "hosts.NAME.models.MODEL": HostModelSection,
    "routes.NAME": RouteSection,
}
"""Every place here with known keys."""


def fleet_place(path: tuple[str | int, ...]) -> str:
    """Which of `FLEET` a mapping at this path is; "" = none."""
    match path:
        case ("peers" | "hosts" | "routes" as section, str()):
            return f"{section}.NAME"
        case ("peers", str(), "filters" | "timeouts" as section):
            return f"peers.NAME.{section}"
        case ("hosts", str(), "models", str()):
            return "hosts.NAME.models.MODEL"
        case _:
            return ""
