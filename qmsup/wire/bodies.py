"""The bodies of control answers, for those who read them (PROTOCOL.md). What is unknown is null.

Every field has a default and fields may be added, so that a reader and a scheduler one release apart get along.
"""

from typing import Any

import msgspec

from qmsup.ids import Epoch, EventNumber, LeaseId, ListenerName, ModelId, RequestId, WorkerId


class Worker(msgspec.Struct, kw_only=True, frozen=True):
    """One listener worker process.

    Attributes:
        waiting: its requests in the line.
        held: its requests that use a model now.
    """

    name: ListenerName = ListenerName("")
    worker: WorkerId = WorkerId("")
    pid: int | None = None
    waiting: int = 0
    held: int = 0


class Mishap(msgspec.Struct, kw_only=True, frozen=True):
    """A bug that a part of the scheduler process met in its life, and survived.

    Attributes:
        last: when, in Unix seconds.
        doing: what the part was about.
        because: the kind of exception, and where in the code.
    """

    part: str = ""
    times: int = 0
    last: float = 0.0
    doing: str = ""
    because: str = ""


class Status(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `status`. `since` is when this scheduler started, in Unix seconds."""

    pid: int | None = None
    epoch: Epoch = Epoch(0)
    version: str = ""
    since: float | None = None
    config: str = ""
    draining: bool = False
    listeners: tuple[Worker, ...] = ()
    mishaps: tuple[Mishap, ...] = ()


class Model(msgspec.Struct, kw_only=True, frozen=True):
    """One model in the answer to `ps`.

    Attributes:
        closing: why it takes no new requests though it is ready: `unload`, `removed` or `line`.
        vram_mib: what its child is charged of the GPU memory: as measured, else as estimated.
        vram_estimated_mib: what the configuration says.
        vram_measured_mib: what starts with its arguments were measured to take.
        vram_peak_mib: the most that its child was seen to use.
        vram_held_mib: what it is seen to use now.
        ram_mib: the most that its child was seen to use of the box's memory.
        ctx: tokens of context.
        hold_s: how much longer it is kept for a client that is likely to come back.
        ttl_s: idle time left before it is unloaded.
        pinned: an operator wants it to stay.
        age_s: since its child was spawned.
        error: why the last start failed.
    """

    name: ModelId = ModelId("")
    state: str = ""
    pid: int | None = None
    port: int | None = None
    vram_mib: int | None = None
    vram_estimated_mib: int | None = None
    vram_measured_mib: int | None = None
    vram_peak_mib: int | None = None
    vram_held_mib: int | None = None
    ram_mib: int | None = None
    ctx: int | None = None
    inflight: int | None = None
    queued: int | None = None
    hold_s: float | None = None
    ttl_s: float | None = None
    pinned: bool = False
    age_s: float | None = None
    error: str | None = None
    closing: str | None = None


class Card(msgspec.Struct, kw_only=True, frozen=True):
    """One GPU, and what all children use of it."""

    uuid: str = ""
    name: str = ""
    total_mib: int | None = None
    used_mib: int | None = None
    ours_mib: int | None = None


class Memory(msgspec.Struct, kw_only=True, frozen=True):
    """What was read of the memory last: of all GPUs together, of each, and of the machine.

    Attributes:
        is_trusted: it is decided by; else the budgets alone are.
        because: why it is not.
        ours_mib: used by all children.
        foreign_mib: used by others.
        floor_mib: of that, the least that was seen.
        ceiling_mib: what all models may use together now.
        ram_available_mib: what can be taken without swapping.
    """

    is_trusted: bool = False
    because: str | None = None
    total_mib: int | None = None
    used_mib: int | None = None
    free_mib: int | None = None
    ours_mib: int | None = None
    foreign_mib: int | None = None
    floor_mib: int | None = None
    ceiling_mib: int | None = None
    ram_total_mib: int | None = None
    ram_available_mib: int | None = None
    ram_ours_mib: int | None = None
    cards: tuple[Card, ...] = ()


class Ps(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `ps`: every configured model, in the order of the file."""

    models: tuple[Model, ...] = ()
    draining: bool = False
    vram_budget_mib: int | None = None
    memory: Memory = Memory()


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `load`: the model is ready."""

    model: ModelId = ModelId("")
    text: str = ""


class Unloaded(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `unload`: these have stopped."""

    stopped: tuple[ModelId, ...] = ()
    text: str = ""


class Place(msgspec.Struct, kw_only=True, frozen=True):
    """One place in the line.

    Attributes:
        position: 1 = next.
        request: null for a control client's `load`.
        patience_left_s: how much longer it respects that others are in its way.
        because: why it waits, in a word.
    """

    position: int = 0
    request: RequestId | None = None
    model: ModelId = ModelId("")
    listener: ListenerName | None = None
    waited_s: float = 0.0
    patience_left_s: float | None = None
    because: str = ""


class Loading(msgspec.Struct, kw_only=True, frozen=True):
    """A model that is being loaded, and how many of those who left the line for it wait."""

    model: ModelId = ModelId("")
    waiting: int = 0


class Queue(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `queue`: the line, first to last, and the loads under way."""

    queue: tuple[Place, ...] = ()
    loading: tuple[Loading, ...] = ()


class Told(msgspec.Struct, kw_only=True, frozen=True):
    """Something that happened, at `time` in Unix seconds: the turn of this number in that life of the scheduler."""

    time: float = 0.0
    epoch: Epoch = Epoch(0)
    turn: EventNumber = EventNumber(0)
    text: str = ""


class Explanation(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `explain`, about a model or about a request.

    Attributes:
        request: null when it is about a model.
        now: how things stand, in sentences.
        evicts: what would have to stop if the model were loaded now.
        reasons: why those.
        obstacles: what keeps it from being loaded, or used, at once.
        waiting: who waits for the model in the line.
        loading: the requests that wait for its load.
        story: what happened and was decided, oldest first.
    """

    model: ModelId | None = None
    request: RequestId | None = None
    now: tuple[str, ...] = ()
    evicts: tuple[ModelId, ...] = ()
    reasons: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    waiting: tuple[Place, ...] = ()
    loading: tuple[RequestId, ...] = ()
    story: tuple[Told, ...] = ()


class Journal(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `journal`: all that was decided is in this folder now, or could not be written."""

    folder: str = ""
    is_written: bool = True


class Reloaded(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `reload`: the file is in force.

    Attributes:
        added, removed, changed: models.
        settings: other keys with another value.
        needs_restart: what counts only after a restart, a sentence each.
    """

    version: str = ""
    added: tuple[ModelId, ...] = ()
    removed: tuple[ModelId, ...] = ()
    changed: tuple[ModelId, ...] = ()
    settings: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    text: str = ""


class Lease(msgspec.Struct, kw_only=True, frozen=True):
    """One use of a model in the answer to `leases`.

    Attributes:
        kind: `request` or `job`.
        owner: the worker of a request; whatever a job said.
        ttl_s: time left before a job has to renew it.
    """

    lease: LeaseId = LeaseId("")
    model: ModelId = ModelId("")
    kind: str = ""
    owner: str = ""
    purpose: str = ""
    ttl_s: float | None = None


class Leases(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `leases`."""

    leases: tuple[Lease, ...] = ()


class HostModel(msgspec.Struct, kw_only=True, frozen=True):
    """A model that a host can load. `ctx` = tokens of a slot, where that is known."""

    name: ModelId
    parallel: int = 1
    queue_max: int = 0
    inflight: int = 0
    queued: int = 0
    ctx: int | None = None


class Host(msgspec.Struct, kw_only=True, frozen=True):
    """A machine that routes choose from. `slots` and `busy` are those it tells of itself."""

    name: str
    url: str = ""
    kind: str = ""
    healthy: bool = False
    because: str = ""
    draining: bool = False
    weight: float = 1.0
    loaded: tuple[str, ...] = ()
    slots: int | None = None
    busy: int | None = None
    conversations: int = 0
    models: tuple[HostModel, ...] = ()


class Hosts(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `hosts`."""

    hosts: tuple[Host, ...] = ()


class Leased(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `lease`: the model is ready and in use for the job."""

    lease: LeaseId = LeaseId("")
    model: ModelId = ModelId("")
    text: str = ""


class Done(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to what is done at once, in a sentence."""

    text: str = ""


class Subscription(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `subscribe`: the state, to be kept up to date by the feed.

    Attributes:
        seq: by kind, the number of the last message of the feed that `state` includes.
        state: body by topic.
        decisions: the last ones, oldest first.
    """

    endpoint: str = ""
    epoch: Epoch = Epoch(0)
    seq: dict[str, int] = {}
    state: dict[str, Any] = {}
    decisions: tuple[dict[str, Any], ...] = ()
