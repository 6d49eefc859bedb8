"""What the job watcher and the scheduler tell each other about the leases of jobs."""

from dataclasses import dataclass

from qmsup.errors import Refusal
from qmsup.ids import Incarnation, LeaseId, ModelId, RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginJob:
    """A job is to be begun on the child that a request was granted: it needs a lease of its own first.

    Attributes:
        purpose: for people who wonder who keeps the model.
    """

    lease: LeaseId
    request: RequestId
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepJob:
    """A job goes on: its lease is to live on, or be taken again if it has ended and the child has not."""

    lease: LeaseId
    model: ModelId
    incarnation: Incarnation
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndJob:
    """A job is over, or was never begun: its lease ends."""

    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownJobs:
    """The leases of all jobs that are known at the start: others are of jobs that were never begun, and end."""

    leases: frozenset[LeaseId]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGiven:
    """The lease is held, and this is the child that may be given the job."""

    lease: LeaseId
    model: ModelId
    incarnation: Incarnation
    upstream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRefused:
    """There will be no lease: the job cannot be begun."""

    lease: LeaseId
    refusal: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """The lease ended, for whatever reason: to be kept, if its job has not ended with it."""

    lease: LeaseId
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildGone:
    """The child that ran the job does not run any more, and the job neither."""

    lease: LeaseId


JobWish = BeginJob | KeepJob | EndJob | KnownJobs
JobNews = LeaseGiven | LeaseRefused | LeaseEnded | ChildGone
