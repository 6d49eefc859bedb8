"""What the operator asked for, as plain frozen values. `qmsup.config` makes them from YAML; nobody changes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.units import MiB, Seconds


class Kind(StrEnum):
    """Which program a child is; it decides how readiness is checked and which arguments are added."""

    LLAMA_SERVER = "llama-server"
    SD_SERVER = "sd-server"
    GENERIC = "generic"


class OnExit(StrEnum):
    """What happens to children when the scheduler ends."""

    KEEP = "keep"
    STOP = "stop"


class HoldOn(StrEnum):
    """After which requests an idle model is held for the next one."""

    TOOL_CALLS = "tool_calls"
    """Those that called a tool, or whose end could not be read."""
    ALWAYS = "always"


class Affinity(StrEnum):
    """What a route keeps on one host."""

    CONVERSATION = "conversation"
    ROUTE = "route"
    """Every request of the route, conversation or not."""


class Pool(StrEnum):
    """Where a group's models keep their weights, so which budget they are held to."""

    VRAM = "vram"
    RAM = "ram"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSpec:
    """What is changed in JSON requests for a model; a key is one at the top of the body, never `model`.

    Attributes:
        strip: keys that are taken out.
        put: key → its value as JSON, set in every request.
        put_by_name: the name a client used → the same for its requests, over `put`.
    """

    strip: tuple[str, ...] = ()
    put: Mapping[str, str] = field(default_factory=dict)
    put_by_name: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What the operator says a model is good for; `/v1/models` tells it.

    Attributes:
        takes: kinds of input, `text` or `image` for example.
        gives: kinds of output.
        context: in tokens; 0 = unknown.
    """

    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    tools: bool = False
    reranker: bool = False
    context: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One entry of `models:`, resolved: macros replaced (but `${PORT}`), defaults filled in.

    Attributes:
        argv: the command as a shell would split it, no shell runs. May hold `${PORT}` anywhere.
        env: `KEY=value` strings laid over the scrubbed environment.
        upstream: `http://127.0.0.1:${PORT}` unless the operator named another address.
        stop_argv: runs in place of TERM; may hold `${PORT}` and `${PID}`. Empty = TERM.
        ready_check: a path that answers 200 when ready, `status:401 /PATH` where another status says it, `none`,
            `tcp`, or `log:REGEX` (a line of its log).
        est_vram: what the operator says it needs on the GPU; 0 = unknown.
        est_ram: what it needs of the box's memory: all of it in the RAM pool (0 = unknown), else what it offloads.
        slots: concurrent requests at most (`concurrencyLimit`, else the command's `-np`, else the kind's default).
    """

    id: ModelId
    argv: tuple[str, ...]
    kind: Kind = Kind.LLAMA_SERVER
    name: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    unlisted: bool = False
    env: tuple[str, ...] = ()
    stop_argv: tuple[str, ...] = ()
    upstream: str = "http://127.0.0.1:${PORT}"
    ready_check: str = "/health"
    start_timeout: Seconds = Seconds(120.0)
    stop_grace: Seconds = Seconds(10.0)
    ttl: Seconds = Seconds(0.0)
    """It is unloaded when it has been idle for this long; 0 = never."""
    slots: int = 4
    slots_from_child: bool = False
    """Nobody said how many (`slots` is a guess), so the child's own `total_slots` counts once it is known."""
    queue_max: int | None = None
    est_vram: MiB = MiB(0)
    est_ram: MiB = MiB(0)
    fits_itself: bool = False
    """It takes as much of what is free as it finds when it starts, so nothing starts on its device meanwhile."""
    renders: bool = False
    """It makes images or videos: while it works, nothing else is loaded but its like."""
    use_model_name: str | None = None
    """Sent to the child as the body's `model` instead of what the client wrote."""
    filters: FilterSpec = field(default_factory=FilterSpec)
    abilities: Abilities = field(default_factory=Abilities)
    metadata: str = ""
    """A JSON object that `/v1/models` tells; "" = none."""
    send_loading_state: bool = True
    """Whether its clients are told how they wait, where the configuration has that at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """One entry of `groups:`: which models make room for which (scheduling: eviction policies)."""

    id: str
    members: tuple[ModelId, ...]
    swap: bool = True
    exclusive: bool = True
    persistent: bool = False
    pool: Pool = Pool.VRAM


@dataclass(frozen=True, slots=True)
class AllOf:
    """Models that may run together: one combination of each part (`&`)."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A choice: the combinations of each part, those of the first part first (`|`)."""

    parts: tuple["Expression", ...]


Expression = ModelId | AllOf | AnyOf
"""Which combinations of models may run together. A part that several share is one object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSpec:
    """The `matrix:` section, its short names and `+sets` filled in.

    Attributes:
        sets: by name, in the order of the file, which decides between equals.
        costs: what stopping a model costs, from 1; 1 where nothing is said.
    """

    sets: Mapping[str, Expression]
    costs: Mapping[ModelId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """One entry of `apiKeys`.

    Attributes:
        key: as clients send it, or its digest: `sha256:` and 64 hex digits. In the journal it is left out.
        name: what the activity calls it; "" = it has none.
        models: those it may be used for; None = every model of the port.
        admin: it also opens what is the operator's business: to load and unload, to take leases, to reload.
    """

    key: str = field(default="", repr=False)
    name: str = ""
    models: frozenset[ModelId] | None = None
    admin: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    """One entry of `listeners:`: a port with a catalogue of its own.

    Attributes:
        groups: the groups whose members it shows; None = every model, and those of the peers.
        routes: the keys of `routes:` that it serves; None = all.
        api_keys: empty = open.
    """

    name: ListenerName
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 2
    groups: tuple[str, ...] | None = None
    routes: tuple[RouteName, ...] | None = None
    api_keys: tuple[KeySpec, ...] = ()

    def serves(self, route: RouteName) -> bool:
        """Whether it has this key of `routes:`."""
        return self.routes is None or route in self.routes


ANYONE = "anyone"
"""In place of the certificates that count: none is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSpec:
    """One entry of `peers:`: another machine's server, which models of no child of ours are asked of.

    Attributes:
        upstream: `host:port`.
        trust: None = it speaks plain HTTP; else https, and its certificate is trusted if this system does (""), if one
            in this file does, or in any case (ANYONE).
        path: what its paths begin with, without a slash at the end; "" as a rule.
        api_key: sent as the request's key; "" = none.
        models: as it calls them.
        connect_timeout: so long may a connection to it take.
        answer_timeout: so long may it take from the whole request to the first byte of its answer; 0 = for ever.
    """

    name: HostName
    upstream: str
    trust: str | None = None
    path: str = ""
    api_key: str = field(default="", repr=False)
    models: tuple[ModelId, ...] = ()
    filters: FilterSpec = field(default_factory=FilterSpec)
    connect_timeout: Seconds = Seconds(10.0)
    answer_timeout: Seconds = Seconds(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsSpec:
    """What a host takes of one model: requests at once, and requests that may wait for that."""

    parallel: int = 1
    queue_max: int = 0


LOCAL = HostName("local")
"""This box, among the hosts of a route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """One entry of `hosts:`: a llama-server, its router, or another qmsup.

    Attributes:
        upstream: `host:port`.
        trust: as a peer's.
        api_key: sent as the request's key; "" = none.
        weight: what a free slot of it is worth against another host's.
        models: those it can load, by the names it goes by.
    """

    name: HostName
    upstream: str
    trust: str | None = None
    api_key: str = field(default="", repr=False)
    weight: float = 1.0
    models: Mapping[ModelId, SlotsSpec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec:
    """One entry of `routes:`: requests that go to one of several hosts.

    Attributes:
        name: with `*`, `?` or `[` in it a template that serves every name it matches.
        hosts: those it may choose from; `local` = this box.
        default_model: of requests that name none; "" = they must.
        peers: tried in order when no host can be used.
        queue: whether its requests wait for a slot; False = they are only counted.
    """

    name: RouteName
    hosts: tuple[HostName, ...]
    default_model: str = ""
    peers: tuple[HostName, ...] = ()
    affinity: Affinity = Affinity.CONVERSATION
    queue: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSpec:
    """The `scheduler:` section, in seconds."""

    line_max: int = 2048
    offer_timeout: Seconds = Seconds(5.0)
    listener_grace: Seconds = Seconds(30.0)
    position_interval: Seconds = Seconds(0.25)
    hold: Seconds = Seconds(10.0)
    """How long an idle model is kept for a conversation that is likely to come back; 0 = not at all."""
    hold_on: HoldOn = HoldOn.TOOL_CALLS
    patience: Seconds = Seconds(300.0)
    """How long a waiter respects holds and busy incumbents; 0 = no hold at all."""
    lend: Seconds = Seconds(0.05)
    """How long a worker may go on with a lease after it was granted, while nobody waits; 0 = not at all."""
    settle: Seconds = Seconds(3.0)
    """How long a load waits at most for the memory of what made room for it."""
    priority: Mapping[ModelId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSpec:
    """The `control:` section.

    Attributes:
        endpoint: `tcp://HOST:PORT`.
        secret_key: file of the scheduler's own key.
        clients: folder of the public keys of those who may ask.
    """

    endpoint: str
    secret_key: str
    clients: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The whole configuration."""

    models: Mapping[ModelId, ModelSpec]
    groups: tuple[GroupSpec, ...] = ()
    matrix: MatrixSpec | None = None
    """Decides instead of groups and budgets."""
    listeners: Mapping[ListenerName, ListenerSpec] = field(default_factory=dict)
    peers: Mapping[HostName, PeerSpec] = field(default_factory=dict)
    hosts: Mapping[HostName, HostSpec] = field(default_factory=dict)
    routes: Mapping[RouteName, RouteSpec] = field(default_factory=dict)
    scheduler: SchedulerSpec = field(default_factory=SchedulerSpec)
    control: ControlSpec | None = None
    """Control over TCP; None = there is none."""
    vram_budget: MiB | None = None
    ram_budget: MiB | None = None
    oom_guard_reserve: MiB = MiB(1024)
    """Kept from new loads as soon as other programs use more of the GPUs than they did."""
    oom_guard_grace: Seconds = Seconds(30.0)
    """How long our models may hold more than others leave them before idle ones are unloaded."""
    oom_guard_evict: bool = True
    """Whether they are."""
    start_port: int = 5800
    on_exit: OnExit = OnExit.STOP
    list_aliases: bool = False
    """Whether `/v1/models` lists aliases as models of their own."""
    send_loading_state: bool = False
    loading_remarks: bool = True
    max_body: int = 256 * 1024 * 1024
    """The largest request body, in bytes after decoding."""
    scheduler_grace: Seconds = Seconds(15.0)
    shutdown_drain: Seconds = Seconds(5.0)
    preload: tuple[ModelId, ...] = ()
    """Loaded once the scheduler has started, in this order."""
    log_level: str = "info"
    log_format: str = "auto"
    access_log: bool = True
    looked_at_only: tuple[str, ...] = ()
    """Regular expressions of paths under `/upstream/MODEL` that load no model."""

    def model_named(self, name: str) -> ModelSpec | None:
        """The model with this id or alias."""
        found = self.models.get(ModelId(name))
        if found is not None:
            return found
        return next((m for m in self.models.values() if name in m.aliases), None)

    def route_named(self, name: str) -> RouteSpec | None:
        """The route of this name, else the first template that matches it."""
        found = self.routes.get(RouteName(name))
        if found is not None:
            return found
        return next((r for r in self.routes.values() if fnmatchcase(name, r.name)), None)

    def shown_on(self, listener: ListenerSpec) -> tuple[ModelSpec, ...]:
        """The models of a listener's catalogue, in the order of the file."""
        if listener.groups is None:
            return tuple(self.models.values())
        members = {m for g in self.groups if g.id in listener.groups for m in g.members}
        return tuple(m for m in self.models.values() if m.id in members)
