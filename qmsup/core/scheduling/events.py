"""What happened. The scheduler's state changes through these and in no other way."""

from qmsup.core.scheduling.inheritance import Recovered
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.scheduling.messages import Word, message
from qmsup.ids import AskId, Incarnation, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.spec import Spec
from qmsup.units import Seconds


class Outcome(Word):
    """How a lease ended; holds are gated by it (scheduling: holds and patience)."""

    TOOL_CALLS = "tool_calls"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"
    UNKNOWN = "unknown"


@message
class RequestArrived:
    """A listener asks for a model on behalf of a client.

    Repeating it is harmless: a request that is known already gets its last answer again.

    Attributes:
        model: after aliases; may be one that is not configured.
        streaming: the client can be told its place in the line while it waits.
        hold, patience, timeout: what the client's headers said; None = nothing, 0 = off.
        conversation: the affinity key, "" when there is none.
        client: who asks, as far as the listener can tell clients apart; it stands in for a missing affinity key.
        waited: how long it has waited already, when a worker tells of it again to a new scheduler.
        is_tracked: it only counts, as whoever sent it queues by itself: no limit and no bound of the line holds for it.
    """

    request: RequestId
    listener: WorkerId
    model: ModelId
    streaming: bool = False
    hold: Seconds | None = None
    patience: Seconds | None = None
    timeout: Seconds | None = None
    conversation: str = ""
    client: str = ""
    waited: Seconds = Seconds(0.0)
    is_tracked: bool = False


@message
class RequestAbandoned:
    """The client of a waiting request went away."""

    request: RequestId


@message
class GrantAccepted:
    """The listener relays under the offered lease."""

    request: RequestId


@message
class GrantDeclined:
    """The client had gone when the grant came."""

    request: RequestId


@message
class Use:
    """A further request that a listener served under a lease it had been lent, without asking.

    Attributes:
        hold, conversation, client: as a RequestArrived would have told.
    """

    request: RequestId
    outcome: Outcome
    served: bool = True
    hold: Seconds | None = None
    conversation: str = ""
    client: str = ""


@message
class LeaseReleased:
    """A lease's work ended. Idempotent: unknown and released ids are ignored.

    Attributes:
        served: at least one byte of an answer came from the child; it resets the load back-off.
        uses: what else was done under it after that, in order.
    """

    lease: LeaseId
    outcome: Outcome
    served: bool = True
    uses: tuple[Use, ...] = ()


@message
class LiveLease:
    """A lease that a listener still holds, told again to a scheduler that may not know it.

    Attributes:
        hold, conversation, client: as in the request's RequestArrived: its end is to do what it would have done.
        waited: from arrival to its grant.
    """

    request: RequestId
    model: ModelId
    incarnation: Incarnation
    hold: Seconds | None = None
    conversation: str = ""
    client: str = ""
    waited: Seconds = Seconds(0.0)


@message
class ListenerJoined:
    """A worker process greeted: what it holds, and what waits in it (each as it first arrived).

    Attributes:
        lends: it can keep leases that it is lent, and gives them back when asked.
    """

    listener: WorkerId
    name: ListenerName
    pid: int
    leases: tuple[LiveLease, ...] = ()
    waiting: tuple[RequestArrived, ...] = ()
    lends: bool = False


@message
class ListenerSuspected:
    """A worker is alive but silent: no new grants to it, its leases stay for a grace."""

    listener: WorkerId


@message
class ListenerLost:
    """A worker's process is gone: its request leases and waiters go with it."""

    listener: WorkerId


@message
class ProcessStarting:
    """A child was spawned."""

    model: ModelId
    incarnation: Incarnation
    pid: int
    port: int


@message
class ProcessReady:
    """A child answers requests.

    Attributes:
        upstream: where, as `host:port`; opaque to the scheduler.
        total_slots: the child's own word on how many requests it runs side by side, where it told.
        context: tokens that one of its slots holds, where it told.
    """

    model: ModelId
    incarnation: Incarnation
    upstream: str
    pid: int
    total_slots: int | None = None
    context: int | None = None


@message
class ProcessStopped:
    """A child that was told to stop, or was never spawned, is gone and reaped."""

    model: ModelId
    incarnation: Incarnation


@message
class ProcessFailed:
    """A child could not start, or died by itself, and is reaped.

    Attributes:
        reason: one sentence with the exit code or signal.
        last_lines: the end of its log, "" when there is none.
    """

    model: ModelId
    incarnation: Incarnation
    reason: str
    last_lines: str = ""


@message
class UnloadAsked:
    """A control client wants models stopped; no models = all."""

    ask: AskId
    models: tuple[ModelId, ...] = ()
    drain: bool = False


@message
class LoadAsked:
    """A control client wants a model ready; it joins the swap as a request would."""

    ask: AskId
    model: ModelId


@message
class AskWithdrawn:
    """The control client that asked is gone."""

    ask: AskId


@message
class LeaseRequested:
    """A job, or whoever looks after one, takes a model into use for longer than a request.

    It waits for the model to be ready as a request would, and loads it if need be; no limit of requests at once
    holds it back, for the request that began the job may still be in flight. Answered with the lease's id.

    Attributes:
        lease: chosen by who asks; it names nothing else.
        owner, purpose: for people who wonder who keeps the model.
        ttl: from the moment it is held; renewed or over.
    """

    ask: AskId
    lease: LeaseId
    model: ModelId
    owner: str = ""
    purpose: str = ""
    ttl: Seconds


@message
class LeaseRenewed:
    """A job goes on: its lease lives for `ttl` from now. Refused for one that is over."""

    ask: AskId
    lease: LeaseId
    ttl: Seconds


@message
class ReleaseAsked:
    """A job is done. Idempotent: an unknown lease, or one that is over, is answered in words, not refused.

    A lease that is still waited for is wanted no longer.
    """

    ask: AskId
    lease: LeaseId


@message
class PinAsked:
    """A control client wants a model to stay, once it is loaded, or to stay no longer."""

    ask: AskId
    model: ModelId
    is_pinned: bool


@message
class DrainAsked:
    """A control client wants this box to take no more work, or to take it again. Answered at once."""

    ask: AskId
    is_draining: bool


@message
class ConfigApplied:
    """A validated configuration replaces the one in force."""

    spec: Spec


@message
class Woke:
    """The time of the last ArmWake has come."""


@message
class ShutdownAsked:
    """The scheduler process is to end."""


Event = (
    RequestArrived
    | RequestAbandoned
    | GrantAccepted
    | GrantDeclined
    | LeaseReleased
    | UseLasted
    | ListenerJoined
    | ListenerSuspected
    | ListenerLost
    | ProcessStarting
    | ProcessReady
    | ProcessStopped
    | ProcessFailed
    | UnloadAsked
    | LoadAsked
    | AskWithdrawn
    | LeaseRequested
    | LeaseRenewed
    | ReleaseAsked
    | PinAsked
    | DrainAsked
    | CeilingChanged
    | MemoryReturned
    | MemoryRead
    | FootprintMeasured
    | ConfigApplied
    | Recovered
    | Woke
    | ShutdownAsked
)
