"""What is to be done. The scheduler returns these; an actor carries them out and decides nothing of its own."""

from qmsup.core.scheduling.memory_events import SeenBy
from qmsup.core.scheduling.messages import message
from qmsup.errors import Refusal
from qmsup.ids import AskId, EventNumber, Incarnation, LeaseId, ModelId, RequestId, WorkerId
from qmsup.units import MiB, Seconds


@message
class Grant:
    """Offer a lease: the listener may relay to the upstream at once, and answers accepted or declined.

    Attributes:
        was_ready: the model was ready when the request arrived, so it paid for no load.
        waited: from arrival to this grant.
        lent: for how long from now the listener may use the lease for further requests; 0 = for this one alone.
    """

    cause: EventNumber
    request: RequestId
    listener: WorkerId
    model: ModelId
    incarnation: Incarnation
    upstream: str
    was_ready: bool
    waited: Seconds
    lent: Seconds = Seconds(0.0)


@message
class Recall:
    """Have a listener give back the leases that it only keeps, and keep none until it is lent one again."""

    cause: EventNumber
    listener: WorkerId


@message
class Refuse:
    """Tell a listener that its request gets no grant."""

    cause: EventNumber
    request: RequestId
    listener: WorkerId
    refusal: Refusal


@message
class Cut:
    """Tell a listener to end a relay under way: the model is being stopped under it, or the lease is void.

    Attributes:
        had_lapsed: the lease was gone before the listener spoke of it; what has not begun may be asked for again.
    """

    cause: EventNumber
    request: RequestId
    listener: WorkerId
    refusal: Refusal
    had_lapsed: bool = False


@message
class LineMoved:
    """Tell a listener the places of its waiting requests, 1 = next, over the whole line.

    Attributes:
        was_ready: of a request that has just come: its model was ready then. None = nothing is said of that.
    """

    cause: EventNumber
    listener: WorkerId
    places: tuple[tuple[RequestId, int], ...]
    was_ready: bool | None = None


@message
class TellLoading:
    """Tell a listener that its requests left the line: their model is being loaded for them (place 0)."""

    cause: EventNumber
    listener: WorkerId
    requests: tuple[RequestId, ...]


@message
class EnsureReady:
    """Have a model's owner bring up this incarnation, whatever state the child is in."""

    cause: EventNumber
    model: ModelId
    incarnation: Incarnation


@message
class ReadMemory:
    """Have the memory read anew, now: something is to be spawned. What is new is told as ever, and then MemoryRead."""

    cause: EventNumber


@message
class Stop:
    """Have a model's owner stop this incarnation. Ends in ProcessStopped or ProcessFailed, always."""

    cause: EventNumber
    model: ModelId
    incarnation: Incarnation


@message
class AbortStart:
    """Have a model's owner give up a start that nobody waits for. Ends as Stop does."""

    cause: EventNumber
    model: ModelId
    incarnation: Incarnation


@message
class ArmWake:
    """Send Woke at this time, forgetting any earlier wish; None = no wake is wanted."""

    cause: EventNumber
    at: Seconds | None


@message
class Answer:
    """Answer a control client: done, or refused with words."""

    cause: EventNumber
    ask: AskId
    text: str = ""
    refusal: Refusal | None = None


@message
class Record:
    """A decision worth telling an operator about.

    Attributes:
        decision: an event name, such as `swap.started`.
        lease: of a job; a request's lease is named by its request.
        because: the reason in a word or a sentence.
    """

    cause: EventNumber
    decision: str
    model: ModelId | None = None
    request: RequestId | None = None
    lease: LeaseId | None = None
    evicts: tuple[ModelId, ...] = ()
    because: str = ""


@message
class Remember:
    """Keep what a model was measured to take, for the next life of the scheduler.

    Attributes:
        argv: what it was started with: only such starts are sized by it.
        peak: on the GPU.
        ram: of the box's memory, 0 = not known.
    """

    cause: EventNumber
    model: ModelId
    argv: tuple[str, ...]
    peak: MiB
    ram: MiB
    seen_by: SeenBy


@message
class EndProcess:
    """Shutdown is complete: nothing of ours runs that should not."""

    cause: EventNumber


Effect = (
    Grant
    | Recall
    | Refuse
    | Cut
    | LineMoved
    | TellLoading
    | ReadMemory
    | EnsureReady
    | Stop
    | AbortStart
    | ArmWake
    | Answer
    | Record
    | Remember
    | EndProcess
)
