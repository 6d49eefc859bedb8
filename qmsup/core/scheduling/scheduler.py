"""The one door: `Scheduler.handle(event, now) -> list[Effect]`. No clock, thread, socket or log behind it."""

from collections.abc import Callable
from typing import assert_never

from qmsup.core.scheduling import (
    children,
    draining,
    footprints,
    jobs,
    law,
    leases,
    lending,
    listeners,
    pins,
    places,
    readings,
    recovery,
    reload,
    requests,
    residency,
    shedding,
    shutdown,
    swaps,
    unload,
    walks,
)
from qmsup.core.scheduling.effects import ArmWake, Effect
from qmsup.core.scheduling.events import (
    AskWithdrawn,
    ConfigApplied,
    DrainAsked,
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    LeaseRenewed,
    LeaseRequested,
    ListenerJoined,
    ListenerLost,
    ListenerSuspected,
    LoadAsked,
    PinAsked,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
    ReleaseAsked,
    RequestAbandoned,
    RequestArrived,
    ShutdownAsked,
    UnloadAsked,
    Woke,
)
from qmsup.core.scheduling.inheritance import Recovered
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.line import Waiter
from qmsup.core.scheduling.memory_events import (
    CeilingChanged,
    FootprintMeasured,
    MemoryRead,
    MemoryReturned,
)
from qmsup.core.scheduling.records import (
    Due,
    Ending,
    Idle,
    Law,
    Lease,
    Listener,
    Missing,
    Model,
    Places,
)
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stock import Guard, Looking, Returning, Taking
from qmsup.ids import Incarnation
from qmsup.spec import Spec
from qmsup.units import Seconds

_FIRST = Incarnation(1)


class Scheduler:
    """Owns the state; every change of it is one call of `handle`."""

    __slots__ = ("_state",)

    def __init__(self, spec: Spec, first_incarnation: Incarnation = _FIRST) -> None:
        """Nothing runs yet.

        Args:
            spec: the configuration in force until a ConfigApplied.
            first_incarnation: above every number used in the scheduler's former lives.
        """
        self._state = State(spec, first_incarnation)

    @property
    def state(self) -> State:
        """To be read: by views, and by the checks of invariants."""
        return self._state

    def handle(self, event: Event, now: Seconds) -> list[Effect]:
        """Take one event in, and say what is to be done.

        Args:
            event: what happened.
            now: the monotonic clock; never less than in the call before.

        Returns:
            Orders, to be carried out in this order; the last is the one ArmWake.
        """
        state = self._state
        state.begin(now)
        ending = state.ending
        if ending is not None and ending.is_handing_over:
            state.effects.append(ArmWake(cause=state.event, at=None))
            return state.effects
        # What time alone does not change has been settled by the event before.
        has_passed = state.turns.may_be_due(now) and requests.pass_time(state)
        if has_passed or state.law.is_doubtful:
            _settle(state)
        _take(state, event)
        if state.swaps:
            swaps.renders_moved(state)
        if state.line.size or state.law.is_doubtful:
            _settle(state)
        else:  # the usual case by far: nobody is there to fare otherwise
            state.calm()
        if state.ending is not None and not state.ending.is_handing_over:
            shutdown.go_on(state, state.ending)
        if state.line.has_moved:
            places.tell(state)
        if state.lent_to and lending.is_unwanted(state):
            lending.recall(state)
        state.effects.append(ArmWake(cause=state.event, at=state.wake))
        return state.effects


def _settle(state: State, walk: Callable[[State], None] | None = None) -> None:
    """Serve whoever can be served, and stop what a reload left without a place if nobody needs it now."""
    walks.settle(state, walk)
    if state.law.is_doubtful and law.is_to_be_enforced(state) and law.enforce(state):
        walks.settle(state, walk)


def _take(state: State, event: Event) -> None:
    match event:
        case RequestArrived():
            requests.arrived(state, event)
        case GrantAccepted(request=request):
            requests.accepted(state, request)
        case LeaseReleased():
            requests.released(state, event)
        case GrantDeclined(request=request):
            requests.declined(state, request)
        case RequestAbandoned(request=request):
            requests.abandoned(state, request)
        case ListenerJoined() | ListenerSuspected() | ListenerLost() | UseLasted():
            _take_of_listener(state, event)
        case ProcessStarting() | ProcessReady() | ProcessStopped() | ProcessFailed():
            _take_of_child(state, event)
        case LeaseRequested() | LeaseRenewed() | ReleaseAsked():
            _take_of_job(state, event)
        case CeilingChanged() | MemoryReturned() | MemoryRead() | FootprintMeasured():
            _take_of_memory(state, event)
        case _:
            _take_of_operator(state, event)


def _take_of_listener(
    state: State, event: ListenerJoined | ListenerSuspected | ListenerLost | UseLasted
) -> None:
    match event:
        case ListenerJoined():
            listeners.joined(state, event)
        case UseLasted():
            listeners.lasted(state, event)
        case ListenerSuspected(listener=listener):
            listeners.suspected(state, listener)
        case ListenerLost(listener=listener):
            listeners.lost(state, listener)
        case _:
            assert_never(event)


def _take_of_child(
    state: State, event: ProcessStarting | ProcessReady | ProcessStopped | ProcessFailed
) -> None:
    match event:
        case ProcessStarting():
            children.starting(state, event)
        case ProcessReady():
            children.ready(state, event)
        case ProcessStopped():
            children.stopped(state, event)
        case ProcessFailed():
            children.failed(state, event)
        case _:
            assert_never(event)


def _take_of_job(state: State, event: LeaseRequested | LeaseRenewed | ReleaseAsked) -> None:
    match event:
        case LeaseRequested():
            jobs.requested(state, event)
        case LeaseRenewed():
            jobs.renewed(state, event)
        case ReleaseAsked():
            jobs.release_asked(state, event)
        case _:
            assert_never(event)


def _take_of_memory(
    state: State, event: CeilingChanged | MemoryReturned | MemoryRead | FootprintMeasured
) -> None:
    match event:
        case CeilingChanged():
            readings.changed(state, event)
        case MemoryReturned():
            readings.returned(state, event)
        case MemoryRead():
            readings.read(state)
        case FootprintMeasured():
            footprints.measured(state, event)
        case _:
            assert_never(event)


def _take_of_operator(
    state: State,
    event: UnloadAsked
    | LoadAsked
    | AskWithdrawn
    | PinAsked
    | DrainAsked
    | ConfigApplied
    | Recovered
    | Woke
    | ShutdownAsked,
) -> None:
    match event:
        case UnloadAsked():
            unload.asked(state, event)
        case LoadAsked():
            requests.load_asked(state, event)
        case AskWithdrawn(ask=ask):
            requests.withdrawn(state, ask)
        case PinAsked() | DrainAsked():
            _take_of_wish(state, event)
        case ConfigApplied(spec=spec):
            reload.applied(state, spec)
        case Recovered():
            recovery.begin(state, event)
        case Woke():
            while (due := state.deadlines.take_due(state.now)) is not None:
                _time_has_come(state, due)
        case ShutdownAsked():
            shutdown.asked(state)
        case _:
            assert_never(event)


def _take_of_wish(state: State, event: PinAsked | DrainAsked) -> None:
    match event:
        case PinAsked():
            pins.asked(state, event)
        case DrainAsked():
            draining.asked(state, event)
        case _:
            assert_never(event)


def _time_has_come(state: State, due: Due) -> None:
    match due:
        case Lease(is_job=True):
            jobs.expired(state, due)
        case Lease():
            leases.lapse(state, due)
        case Waiter():
            requests.timed_out(state, due)
        case Listener():
            listeners.silent_for_too_long(state, due)
        case Ending():
            shutdown.time_is_up(state, due)
        case Places():
            due.alarm = None
        case Model():
            pass  # its back-off is over, or its refusal stands no longer: the next request tries again
        case _:
            _time_has_come_for_residents(state, due)


def _time_has_come_for_residents(
    state: State, due: Idle | Law | Guard | Missing | Returning | Taking | Looking
) -> None:
    match due:
        case Idle(model=model):
            residency.stop_unused(state, model)
        case Law():
            pass  # the hold that kept somebody has ended, and that has been looked at
        case Guard():
            shedding.time_is_up(state, due)
        case Missing():
            recovery.time_is_up(state, due)
        case Returning() | Taking():
            readings.is_overdue(state, due)
        case Looking():
            readings.is_late(state)
        case _:
            assert_never(due)
