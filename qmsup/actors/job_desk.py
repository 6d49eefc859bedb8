"""The scheduler actor's side of jobs: what their watcher wishes becomes events, and it is told what came of them.

Its questions are asked under names of their own, so that their answers come here and not to a control client.
"""

import contextlib
import itertools
from collections.abc import Callable

import pykka

from qmsup import places
from qmsup.actors.job_door import open_door
from qmsup.actors.job_news import (
    BeginJob,
    ChildGone,
    EndJob,
    JobNews,
    JobWish,
    KeepJob,
    KnownJobs,
    LeaseEnded,
    LeaseGiven,
    LeaseRefused,
)
from qmsup.actors.job_watcher import JobWatcher
from qmsup.core.scheduling.effects import Answer, Record
from qmsup.core.scheduling.events import (
    AskWithdrawn,
    Event,
    LeaseRenewed,
    LeaseRequested,
    ReleaseAsked,
)
from qmsup.core.scheduling.records import Lease
from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal
from qmsup.ids import AskId, LeaseId, ModelId
from qmsup.units import Seconds

OWNER = "jobs"
"""Whose the leases are, as `qmsup leases` shows."""
LEASE_FOR = Seconds(120.0)
"""A job's lease outlives its scheduler by so much; the watcher renews it four times as often."""

_ENDED = "job.ended"
_HEARD_OF_MORE = frozenset({"listener.joined", "scheduler.complete"})
"""Decisions after which more may be known of what is in flight."""


class JobDesk:
    """For the scheduler actor's thread alone."""

    def __init__(self, report: Callable[[JobWish], None], on_break: Callable[[], None]) -> None:
        """Open the door and start the watcher.

        Args:
            report: takes the watcher's wishes, in its thread; they are for `take`.
            on_break: called when the watcher cannot go on.

        Raises:
            OSError: the door cannot be made.
        """

        def tell(wish: JobWish) -> None:
            with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
                report(wish)

        self._report = tell
        self._early: list[BeginJob] = []
        """Whose requests are not known yet, in a new life: their workers may not have told of them."""
        door = open_door(places.jobs_socket())
        self._watcher = JobWatcher.start(door=door, report=tell, on_break=on_break)
        self._asks = map("jobs {}".format, itertools.count(1))
        self._answers: dict[AskId, Answer | None] = {}

    def take(self, wish: JobWish, state: State, handle: Callable[[Event], None]) -> None:
        """Carry a wish to the scheduler, and tell what came of it.

        Args:
            wish: of the watcher.
            state: the scheduler's, to be read.
            handle: gives it an event; what it answers has been given to `answered` when it returns.
        """
        match wish:
            case BeginJob():
                self._begin(wish, state, handle)
            case KeepJob():
                self._keep(wish, state, handle)
            case EndJob(lease=lease):
                self._end(lease, state, handle)
            case KnownJobs(leases=known):
                for held in tuple(state.leases.values()):
                    if held.is_job and held.owner == OWNER and held.id not in known:
                        self._end(held.id, state, handle)

    def answered(self, answer: Answer) -> bool:
        """Take an answer that is for here; False = it is a control client's."""
        if answer.ask not in self._answers:
            return False
        self._answers[answer.ask] = answer
        return True

    def heard(self, record: Record) -> None:
        """A decision was taken; it may be about a job."""
        if record.decision == _ENDED and record.lease is not None:
            self._tell(LeaseEnded(lease=record.lease, because=record.because))
        elif record.decision in _HEARD_OF_MORE and self._early:
            early, self._early = self._early, []
            for wish in early:  # to be taken anew, once this turn is over
                self._report(wish)

    def _begin(self, wish: BeginJob, state: State, handle: Callable[[Event], None]) -> None:
        granted = state.leases.get(LeaseId(wish.request))
        if granted is None and state.missing is not None:
            self._early.append(wish)
            return
        if granted is None or granted.is_job:
            because = "the grant of this request has ended: send the job again"
            refused: Refusal | None = Refusal(code=Code.MODEL_UNLOADED, message=because)
        else:
            refused = self._lease(wish.lease, granted.model, wish.purpose, handle)
        if refused is None:
            self._give(state.leases[wish.lease])
        else:
            self._tell(LeaseRefused(lease=wish.lease, refusal=refused))

    def _keep(self, wish: KeepJob, state: State, handle: Callable[[Event], None]) -> None:
        lease = wish.lease
        if lease in state.leases:
            self._ask(lambda ask: LeaseRenewed(ask=ask, lease=lease, ttl=LEASE_FOR), handle)
        elif _runs(wish, state):
            self._lease(lease, wish.model, wish.purpose, handle)
        else:
            self._tell(ChildGone(lease=lease))
            return
        # One that was refused is asked for again in a while; its child runs in any case.
        if (held := state.leases.get(lease)) is not None:
            self._give(held)

    def _end(self, lease: LeaseId, state: State, handle: Callable[[Event], None]) -> None:
        if lease in state.leases:
            self._ask(lambda ask: ReleaseAsked(ask=ask, lease=lease), handle)

    def _give(self, held: Lease) -> None:
        self._tell(
            LeaseGiven(
                lease=held.id,
                model=held.model,
                incarnation=held.incarnation,
                upstream=held.upstream,
            )
        )

    def _lease(
        self, lease: LeaseId, model: ModelId, purpose: str, handle: Callable[[Event], None]
    ) -> Refusal | None:
        """Take a lease of a model that is ready; None = it is held."""
        return self._ask(
            lambda ask: LeaseRequested(
                ask=ask, lease=lease, model=model, owner=OWNER, purpose=purpose, ttl=LEASE_FOR
            ),
            handle,
        )

    def _ask(
        self, event_of: Callable[[AskId], Event], handle: Callable[[Event], None]
    ) -> Refusal | None:
        ask = AskId(next(self._asks))
        self._answers[ask] = None
        handle(event_of(ask))
        answer = self._answers.pop(ask)
        if answer is not None:
            return answer.refusal
        # It would have to wait, and then perhaps load the model anew: no child of now would know the job.
        handle(AskWithdrawn(ask=ask))
        message = "the model takes nothing new just now: send the job again"
        return Refusal(code=Code.MODEL_UNAVAILABLE, message=message)

    def _tell(self, news: JobNews) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._watcher.tell(news)


def _runs(wish: KeepJob, state: State) -> bool:
    """Whether the very child that the job was given to runs."""
    model = state.models.get(wish.model)
    child = None if model is None else model.child
    return (
        model is not None
        and child is not None
        and model.is_ready
        and child.incarnation == wish.incarnation
    )
