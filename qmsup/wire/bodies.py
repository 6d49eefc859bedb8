"""The bodies of control answers, for those who read them (PROTOCOL.md). What is unknown is null.

Every field has a default and fields may be added, so that a reader and a scheduler one release apart get along.
"""

import msgspec

from qmsup.ids import Epoch, ListenerName, ModelId, WorkerId


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


class Status(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `status`. `since` is when this scheduler started, in Unix seconds."""

    pid: int | None = None
    epoch: Epoch = Epoch(0)
    version: str = ""
    since: float | None = None
    config: str = ""
    listeners: tuple[Worker, ...] = ()


class Model(msgspec.Struct, kw_only=True, frozen=True):
    """One model in the answer to `ps`.

    Attributes:
        vram_mib, ram_mib: what its child uses, measured.
        ctx: tokens of context.
        hold_s: how much longer it is kept for a client that is likely to come back.
        ttl_s: idle time left before it is unloaded.
        age_s: since its child was spawned.
        error: why the last start failed.
    """

    name: ModelId = ModelId("")
    state: str = ""
    pid: int | None = None
    port: int | None = None
    vram_mib: int | None = None
    ram_mib: int | None = None
    ctx: int | None = None
    inflight: int | None = None
    queued: int | None = None
    hold_s: float | None = None
    ttl_s: float | None = None
    age_s: float | None = None
    error: str | None = None


class Ps(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `ps`: every configured model, in the order of the file."""

    models: tuple[Model, ...] = ()
    vram_budget_mib: int | None = None


class Loaded(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `load`: the model is ready."""

    model: ModelId = ModelId("")
    text: str = ""


class Unloaded(msgspec.Struct, kw_only=True, frozen=True):
    """The answer to `unload`: these have stopped."""

    stopped: tuple[ModelId, ...] = ()
    text: str = ""
