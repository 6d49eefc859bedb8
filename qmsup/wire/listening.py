"""Messages between a listener worker and the scheduler: msgpack arrays, the kind first (PROTOCOL.md)."""

from typing import Annotated, Self

import msgspec

from qmsup.ids import (
    Epoch,
    HostName,
    Incarnation,
    ListenerName,
    ModelId,
    RequestId,
    RouteName,
    WorkerId,
)

VERSION = 1
"""The version of the listener protocol, told in `Hello` and `Welcome`; another one is refused in words."""

MOST_TOLD = 20_000
"""Requests that one message tells of, of a kind. Each takes the scheduler's time, and has a connection of its worker's,
which has a few thousand."""


class Routed(msgspec.Struct, array_like=True, frozen=True):
    """What a request of a route says more.

    Attributes:
        is_control: it takes no slot.
        tokens: about how many its prompt has.
        tried: hosts that gave no byte of an answer; it goes to none of them again.
        is_look: it only reads, and loads nothing.
        is_counted: the tokens were counted by a host.
    """

    route: RouteName
    is_control: bool = False
    tokens: int = 0
    tried: tuple[HostName, ...] = ()
    is_look: bool = False
    is_counted: bool = False


class Waiting(msgspec.Struct, array_like=True, frozen=True):
    """A request that waits, as first asked. Times in ms; None = the client's header said nothing."""

    request: RequestId
    model: ModelId
    streaming: bool = False
    hold_ms: int | None = None
    patience_ms: int | None = None
    timeout_ms: int | None = None
    conversation: str = ""
    waited_ms: int = 0
    client: str = ""
    routed: Routed | None = None


class Holding(msgspec.Struct, array_like=True, frozen=True):
    """A lease that is live in a worker, with what decides whether its end holds the model, and for whom."""

    request: RequestId
    model: ModelId
    incarnation: Incarnation
    hold_ms: int | None = None
    conversation: str = ""
    client: str = ""
    waited_ms: int = 0
    host: str = "local"
    routed: Routed | None = None


class Hello(msgspec.Struct, tag="hello", array_like=True, frozen=True):
    """A worker greets a scheduler it has not greeted yet: what it holds and what waits in it, so many at most."""

    version: int
    worker: WorkerId
    listener: ListenerName
    pid: int
    leases: Annotated[tuple[Holding, ...], msgspec.Meta(max_length=MOST_TOLD)] = ()
    waiting: Annotated[tuple[Waiting, ...], msgspec.Meta(max_length=MOST_TOLD)] = ()
    lends: bool = False
    """It can keep leases that it is lent, and gives them back when it is told `Recall`."""


class Ask(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    """A client's request needs a model. Repeated with the same id until answered.

    Attributes:
        waited_ms: since it was asked for first; 0 = now.
    """

    request: RequestId
    model: ModelId
    streaming: bool = False
    hold_ms: int | None = None
    patience_ms: int | None = None
    timeout_ms: int | None = None
    conversation: str = ""
    client: str = ""
    routed: Routed | None = None
    waited_ms: int = 0

    def after(self, waited_ms: int) -> Self:
        """The same question, asked again."""
        return msgspec.structs.replace(self, waited_ms=waited_ms)


class Leave(msgspec.Struct, tag="leave", array_like=True, frozen=True):
    """The client of a waiting request went away."""

    request: RequestId


class Accepted(msgspec.Struct, tag="accepted", array_like=True, frozen=True):
    """The offered lease is in use."""

    request: RequestId


class Declined(msgspec.Struct, tag="declined", array_like=True, frozen=True):
    """The offered lease is not used: the client had gone."""

    request: RequestId


class Use(msgspec.Struct, array_like=True, frozen=True):
    """A further request that was served under a lease that was lent; as its `Ask` and its `Done` would have told."""

    request: RequestId
    outcome: str
    served: bool = True
    hold_ms: int | None = None
    conversation: str = ""
    client: str = ""


class Done(msgspec.Struct, tag="done", array_like=True, frozen=True):
    """The work under a lease ended. `outcome` is a word of scheduling: grants and leases.

    Attributes:
        uses: what else was done under it after that, where it was lent.
    """

    request: RequestId
    outcome: str
    served: bool = True
    uses: Annotated[tuple[Use, ...], msgspec.Meta(max_length=MOST_TOLD)] = ()


class Lasts(msgspec.Struct, tag="lasts", array_like=True, frozen=True):
    """A further use of a lent lease lasts: it has a lease of its own from now on, and the lent one's `Done` follows."""

    request: RequestId
    model: ModelId
    incarnation: Incarnation
    hold_ms: int | None = None
    conversation: str = ""
    client: str = ""


class Beat(msgspec.Struct, tag="beat", array_like=True, frozen=True):
    """The worker is alive. Any other message counts as one too.

    Attributes:
        configured: the version of the last `Configured` that came, whatever became of it; "" = none yet.
    """

    waiting: int
    held: int
    configured: str = ""


class Finished(msgspec.Struct, array_like=True, frozen=True):
    """What became of one request. No prompt and no key is in it. None = not known, or not so far.

    Attributes:
        time: when it arrived, in Unix seconds.
        ms: from then to its end.
        outcome: as in `Done`.
        status: of the HTTP answer; 0 = the client had gone before there was one.
        path: as the model's server knows it, without the query.
        key: which of the listener's keys it came with, by its place, from 1; "" = none is needed.
        fingerprint: of the conversation, else of the client.
        wait_ms: from its arrival to its grant.
        ttft_ms: from its arrival to the first bytes of the model's server.
        tokens_in: of the prompt, those included that the server had cached.
        bytes: sent to the client, heads and comments included.
    """

    request: RequestId
    model: ModelId
    time: float
    ms: int
    outcome: str
    status: int = 0
    method: str = ""
    path: str = ""
    key: str = ""
    fingerprint: str = ""
    streaming: bool = False
    wait_ms: int | None = None
    ttft_ms: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    bytes: int = 0
    route: str = ""
    host: str = "local"


class Activity(msgspec.Struct, tag="activity", array_like=True, frozen=True):
    """Requests of a listener that are over. Nothing answers it, and nobody decides by it.

    Attributes:
        requests: `Finished` each, not read before somebody wants to know.
    """

    listener: ListenerName
    requests: msgspec.Raw


class Welcome(msgspec.Struct, tag="welcome", array_like=True, frozen=True):
    """The scheduler's answer to Hello. A changed epoch means a new scheduler: greet it with all that is live."""

    version: int
    epoch: Epoch


class Configured(msgspec.Struct, tag="configured", array_like=True, frozen=True):
    """The configuration in force: a private copy of its text lies at `path`; the same version is the same text."""

    version: str
    path: str


class Granted(msgspec.Struct, tag="granted", array_like=True, frozen=True):
    """A lease is offered: relay to `upstream` (host:port) now. `host` is its name in the configuration.

    Attributes:
        lent_ms: for how long from now the worker may use it for further requests; 0 = for this one alone.
    """

    request: RequestId
    epoch: Epoch
    model: ModelId
    incarnation: Incarnation
    upstream: str
    was_ready: bool
    waited_ms: int
    host: str = "local"
    lent_ms: int = 0


class Recall(msgspec.Struct, tag="recall", array_like=True, frozen=True):
    """Give back the leases that are only kept, and keep none until one is lent again: somebody waits."""


class Refused(msgspec.Struct, tag="refused", array_like=True, frozen=True):
    """No grant; `code` is one of interfaces: errors.

    Attributes:
        host: one that can count the prompt, which was only estimated to be too long; "" = none. Then the request may
            be asked for again, with its tokens.
        upstream: of that host, `host:port`.
    """

    request: RequestId
    code: str
    message: str
    retry_after_s: float | None = None
    host: str = ""
    upstream: str = ""


class CutOff(msgspec.Struct, tag="cut", array_like=True, frozen=True):
    """End the relay of this request now; the lease is void.

    Attributes:
        had_lapsed: nobody ended it for a reason: its offer was taken up too late, or it was not heard of in time. What
            has not begun may be asked for again.
    """

    request: RequestId
    code: str
    message: str
    had_lapsed: bool = False


class Moved(msgspec.Struct, tag="moved", array_like=True, frozen=True):
    """Places in the line of this worker's waiting requests; 1 = next, 0 = it left the line, as `loading` says."""

    places: tuple[tuple[RequestId, int], ...]
    was_ready: bool | None = None
    """Of one that has just come: whether its model was ready then."""


class Loading(msgspec.Struct, tag="loading", array_like=True, frozen=True):
    """The request left the line: its model is loading for it."""

    request: RequestId


class Unwelcome(msgspec.Struct, tag="unwelcome", array_like=True, frozen=True):
    """The scheduler cannot work with this worker, or does not know it: greet (`greet` true) or give up, and why."""

    reason: str
    greet: bool


FromWorker = Hello | Ask | Leave | Accepted | Declined | Done | Lasts | Beat | Activity
FromScheduler = (
    Welcome | Configured | Granted | Recall | Refused | CutOff | Moved | Loading | Unwelcome
)
