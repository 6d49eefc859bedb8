"""A scheduler in a world where everything is late and in any order; what must hold is stated once."""

import copy
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from typing_extensions import override

from qmsup.core.scheduling import invariants
from qmsup.core.scheduling.effects import ArmWake, Effect, EnsureReady
from qmsup.core.scheduling.events import (
    AskWithdrawn,
    ConfigApplied,
    DrainAsked,
    Event,
    GrantAccepted,
    GrantDeclined,
    LeaseReleased,
    ListenerJoined,
    ListenerLost,
    ListenerSuspected,
    LiveLease,
    LoadAsked,
    Outcome,
    ProcessFailed,
    ProcessReady,
    ProcessStarting,
    ProcessStopped,
    ReleaseAsked,
    RequestAbandoned,
    RequestArrived,
    ShutdownAsked,
    UnloadAsked,
    Use,
    Woke,
)
from qmsup.core.scheduling.lasting import UseLasted
from qmsup.core.scheduling.line import Wants
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.ids import AskId, LeaseId, ListenerName, ModelId, RequestId, WorkerId
from qmsup.units import Seconds
from tests.support.scheduling_bound import Bound
from tests.support.scheduling_naive import naive_handle
from tests.support.scheduling_specs import SPECS
from tests.support.scheduling_wishes import MODELS, PICK, RARELY, Wishes
from tests.support.scheduling_world import Asked, Process, World

WORKERS = st.sampled_from([WorkerId(w) for w in ("w1", "w2")])


class SchedulerMachine(Wishes):
    """A scheduler, two workers and slow process managers."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.names = 0
        self.world = World()
        self.bound = Bound()
        self.live: set[WorkerId] = set()
        self.history: list[tuple[Event, Seconds, list[Effect]]] = []
        self.is_reloaded = False

    @initialize(name=st.sampled_from(sorted(SPECS)))
    def begin(self, name: str) -> None:
        self.spec = SPECS[name]
        self.first = self.spec
        self.scheduler = Scheduler(self.spec)
        for worker in ("w1", "w2"):
            self.greet(WorkerId(worker))

    @override
    def tell(self, event: Event, *, repeated: RequestId | None = None) -> list[Effect]:
        now = Seconds(self.now)
        twin = copy.deepcopy(self.scheduler.state, {id(self.spec): self.spec})
        rendering = self.renders_in_flight()
        effects = self.scheduler.handle(event, now)
        self.history.append((event, now, effects))
        assert naive_handle(twin, event, now) == effects, "the walk along the line is no other"
        self.world.take(effects, repeated=repeated)
        self.check_budget(effects)
        self.check_renders(effects, rendering & self.renders_in_flight())
        self.check_wishes(effects)
        invariants.check(self.scheduler.state, now)
        self.bound.look(self.scheduler.state, event)
        assert [type(e) for e in effects].count(ArmWake) == 1
        return effects

    def check_budget(self, effects: list[Effect]) -> None:
        if (
            self.is_reloaded
            or self.is_measured
            or self.world.pinned
            or self.spec.vram_budget is None
        ):
            return
        for effect in effects:
            if isinstance(effect, EnsureReady):
                total = sum(self.spec.models[m].est_vram for m in self.world.running())
                assert total <= self.spec.vram_budget, "what is loaded together fits"

    def renders_in_flight(self) -> set[LeaseId]:
        """Those of children that live: a listener may not have noticed yet that others have ended."""
        models = [self.scheduler.state.models[name] for name in self.scheduler.state.rendering]
        return {
            lease.id
            for model in models
            for lease in model.leases.values()
            if model.child is not None and lease.incarnation == model.child.incarnation
        }

    def check_renders(self, effects: list[Effect], rendering: set[LeaseId]) -> None:
        models = self.scheduler.state.models
        for effect in effects:
            if isinstance(effect, EnsureReady) and not models[effect.model].spec.renders:
                assert not rendering, f"{effect.model} is spawned beside renders: {rendering}"

    def greet(self, worker: WorkerId) -> None:
        mine = [a for a in self.world.requests.values() if a.listener == worker and not a.is_over]
        self.live.add(worker)
        self.tell(
            ListenerJoined(
                listener=worker,
                name=ListenerName("main"),
                pid=7,
                leases=tuple(
                    LiveLease(request=a.request, model=a.model, incarnation=a.grant.incarnation)
                    for a in mine
                    if a.grant is not None and a.is_accepted
                ),
                waiting=tuple(
                    RequestArrived(request=a.request, listener=worker, model=a.model)
                    for a in mine
                    if a.grant is None
                ),
                lends=worker == "w1",
            )
        )

    def some_request(self, pick: int, *, granted: bool, accepted: bool = False) -> Asked | None:
        able = [
            a
            for a in self.world.requests.values()
            if not a.is_over and (a.grant is not None) == granted and a.is_accepted == accepted
        ]
        return able[pick % len(able)] if able else None

    @rule(
        model=MODELS,
        worker=WORKERS,
        streaming=st.booleans(),
        timeout=st.sampled_from([None, 4]),
        hold=st.sampled_from([None, None, 0, 2]),
        patience=st.sampled_from([None, None, 0, 3]),
        conversation=st.sampled_from(["", "x", "y"]),
        is_tracked=RARELY,
    )
    def arrive(
        self,
        *,
        model: ModelId,
        worker: WorkerId,
        streaming: bool,
        timeout: int | None,
        hold: int | None,
        patience: int | None,
        conversation: str,
        is_tracked: bool,
    ) -> None:
        self.names += 1
        request = RequestId(f"r{self.names}")
        if worker not in self.live:
            return
        self.world.requests[request] = Asked(request, worker, model)
        self.tell(
            RequestArrived(
                request=request,
                listener=worker,
                model=model,
                streaming=streaming,
                timeout=None if timeout is None else Seconds(timeout),
                hold=None if hold is None else Seconds(hold),
                patience=None if patience is None else Seconds(patience),
                conversation=conversation,
                is_tracked=is_tracked,
            )
        )

    @rule(pick=PICK)
    def ask_again(self, pick: int) -> None:
        able = [a for a in self.world.requests.values() if not a.is_over]
        if able:
            asked = able[pick % len(able)]
            if asked.is_accepted:
                return
            if asked.grant is not None and not asked.is_counted:
                asked.earlier, asked.grant, asked.answers = asked.grant, None, 0
            self.tell(
                RequestArrived(request=asked.request, listener=asked.listener, model=asked.model),
                repeated=asked.request,
            )

    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        if asked := self.some_request(pick, granted=False):
            asked.is_over = True
            self.tell(RequestAbandoned(request=asked.request))

    @rule(pick=PICK)
    def accept(self, pick: int) -> None:
        if asked := self.some_request(pick, granted=True):
            asked.is_accepted = True
            self.tell(GrantAccepted(request=asked.request))

    @rule(pick=PICK, declines=st.booleans())
    def take_up_the_earlier_offer(self, pick: int, declines: bool) -> None:
        able = [a for a in self.world.requests.values() if a.earlier and not a.is_over]
        if not able:
            return
        asked = able[pick % len(able)]
        asked.grant = asked.grant or asked.earlier
        asked.earlier, asked.answers, asked.is_over = None, 1, declines
        asked.is_accepted = not declines
        event = GrantDeclined if declines else GrantAccepted
        self.tell(event(request=asked.request))

    @rule(pick=PICK)
    def decline(self, pick: int) -> None:
        if asked := self.some_request(pick, granted=True):
            asked.is_over = True
            self.tell(GrantDeclined(request=asked.request))

    @rule(pick=PICK, served=st.booleans(), outcome=st.sampled_from(Outcome))
    def finish(self, pick: int, served: bool, outcome: Outcome) -> None:
        if asked := self.some_request(pick, granted=True, accepted=True):
            asked.is_over = True
            self.tell(LeaseReleased(lease=LeaseId(asked.request), outcome=outcome, served=served))

    @rule(
        pick=PICK,
        uses=st.lists(st.tuples(st.sampled_from(Outcome), st.sampled_from(["", "x", "y"]))),
        hold=st.sampled_from([None, 0, 2]),
    )
    def finish_after_further_uses(
        self, pick: int, uses: list[tuple[Outcome, str]], hold: int | None
    ) -> None:
        if asked := self.some_request(pick, granted=True, accepted=True):
            asked.is_over = True
            further = tuple(
                Use(
                    request=RequestId(f"{asked.request}+{n}"),
                    outcome=outcome,
                    hold=None if hold is None else Seconds(hold),
                    conversation=conversation,
                )
                for n, (outcome, conversation) in enumerate(uses)
            )
            self.tell(
                LeaseReleased(lease=LeaseId(asked.request), outcome=Outcome.FINISHED, uses=further)
            )

    @rule(pick=PICK, conversation=st.sampled_from(["", "x", "y"]))
    def a_further_use_lasts(self, pick: int, conversation: str) -> None:
        asked = self.some_request(pick, granted=True, accepted=True)
        if asked is None or asked.grant is None:
            return
        self.names += 1
        own = replace(asked, request=RequestId(f"r{self.names}"), is_counted=True)
        self.world.requests[own.request] = own
        self.tell(
            UseLasted(
                listener=asked.listener,
                request=own.request,
                model=asked.model,
                incarnation=asked.grant.incarnation,
                conversation=conversation,
            )
        )
        asked.is_over = True
        self.tell(LeaseReleased(lease=LeaseId(asked.request), outcome=Outcome.FINISHED))

    def some_process(self, pick: int) -> Process | None:
        able = list(self.world.processes.values())
        return able[pick % len(able)] if able else None

    @rule(pick=PICK)
    def spawned(self, pick: int) -> None:
        if process := self.some_process(pick):
            self.tell(
                ProcessStarting(model=process.model, incarnation=process.incarnation, pid=5, port=6)
            )

    @rule(pick=PICK, slots=st.sampled_from([None, 1, 3]))
    def ready(self, pick: int, slots: int | None) -> None:
        if process := self.some_process(pick):
            process.is_ready = True
            self.tell(
                ProcessReady(
                    model=process.model,
                    incarnation=process.incarnation,
                    upstream="up",
                    pid=5,
                    total_slots=slots,
                )
            )

    @rule(pick=PICK, failed=st.booleans())
    def ended(self, pick: int, failed: bool) -> None:
        process = self.some_process(pick)
        if process is None:
            return
        if not (process.is_told_to_stop or failed):
            return
        self.end_process(process)
        self.tell(self.end_of(process, failed=failed))

    def end_of(self, process: Process, *, failed: bool) -> Event:
        if failed:
            return ProcessFailed(
                model=process.model, incarnation=process.incarnation, reason="died"
            )
        return ProcessStopped(model=process.model, incarnation=process.incarnation)

    @rule(pick=PICK, word=st.sampled_from(["ready", "stopped", "failed"]))
    def old_news(self, pick: int, word: str) -> None:
        if not self.world.ended:
            return
        old = self.world.ended[pick % len(self.world.ended)]
        event: Event = self.end_of(old, failed=word == "failed")
        if word == "ready":
            event = ProcessReady(
                model=old.model, incarnation=old.incarnation, upstream="old", pid=1
            )
        effects = self.tell(event)
        assert [type(e) for e in effects] == [ArmWake], "nobody listens to the dead"

    @rule(models=st.lists(MODELS, max_size=2), drain=st.booleans())
    def unload(self, models: list[ModelId], drain: bool) -> None:
        self.names += 1
        self.tell(UnloadAsked(ask=AskId(f"u{self.names}"), models=tuple(models), drain=drain))

    @rule(model=MODELS)
    def load(self, model: ModelId) -> None:
        self.names += 1
        self.tell(LoadAsked(ask=AskId(f"l{self.names}"), model=model))

    @rule(pick=PICK)
    def withdraw(self, pick: int) -> None:
        if self.names:
            self.tell(AskWithdrawn(ask=AskId(f"l{pick % self.names}")))

    @rule(worker=WORKERS, is_so=RARELY)
    def fall_silent(self, worker: WorkerId, is_so: bool) -> None:
        if not is_so:
            return
        self.tell(ListenerSuspected(listener=worker))

    @rule(worker=WORKERS)
    def greet_again(self, worker: WorkerId) -> None:
        if worker in self.live:
            self.greet(worker)

    @precondition(lambda self: len(self.live) > 1)
    @rule(worker=WORKERS, is_so=RARELY)
    def lose(self, worker: WorkerId, is_so: bool) -> None:
        if not is_so:
            return
        self.live.discard(worker)
        for asked in self.world.requests.values():
            if asked.listener == worker:
                asked.is_over = True
        self.tell(ListenerLost(listener=worker))

    @rule(by=st.sampled_from([0.1, 1.0, 6.0, 40.0]))
    def time_passes(self, by: float) -> None:
        self.now += by
        self.tell(Woke())

    @precondition(lambda self: not self.world.has_ended)
    @rule(name=st.sampled_from(sorted(SPECS)), is_so=RARELY)
    def reload(self, name: str, is_so: bool) -> None:
        if not is_so:
            return
        self.is_reloaded = True
        self.spec = SPECS[name]
        self.tell(ConfigApplied(spec=self.spec))

    @rule(is_so=RARELY)
    def shut_down(self, is_so: bool) -> None:
        if is_so:
            self.tell(ShutdownAsked())

    @invariant()
    def a_due_wake_is_armed(self) -> None:
        state = self.scheduler.state
        if self.history and not self.is_handed_over:
            wake = self.history[-1][2][-1]
            assert isinstance(wake, ArmWake)
            assert wake.at == state.wake

    @override
    def teardown(self) -> None:
        if not self.history:
            return
        if self.is_handed_over:
            self.replay()
            return
        self.let_everything_end()
        assert not self.scheduler.state.leases
        assert not [
            w for w in self.scheduler.state.waiters.values() if w.case.wants is not Wants.NOTHING
        ], "whoever asks is answered in the end"
        unanswered = [a for a in self.world.requests.values() if not a.is_over and a.answers == 0]
        assert not [a for a in unanswered if a.listener in self.live], (
            "every request ends in a grant, a refusal or a leave"
        )
        self.replay()

    def let_everything_end(self) -> None:
        """The world goes on until nothing more can happen."""
        for worker in sorted(self.live):
            self.greet(worker)
        self.tell(DrainAsked(ask=self.an_ask("d"), is_draining=False))
        for _ in range(200):
            self.now += 0.5
            self.tell(Woke())
            if asked := self.some_request(0, granted=True):
                asked.is_accepted = True
                self.tell(GrantAccepted(request=asked.request))
            elif asked := self.some_request(0, granted=True, accepted=True):
                asked.is_over = True
                self.tell(LeaseReleased(lease=LeaseId(asked.request), outcome=Outcome.FINISHED))
            elif held := [j for j in self.world.jobs if j in self.scheduler.state.leases]:
                self.tell(ReleaseAsked(ask=self.an_ask("e"), lease=held[0]))
            elif not self.let_a_process_answer() and not self.let_a_turn_come():
                break
        if self.scheduler.state.ending is not None:
            self.now += 100
            self.tell(Woke())
            while self.let_a_process_answer():
                pass
            assert self.world.has_ended, "a shutdown ends"

    def let_a_turn_come(self) -> bool:
        """Whoever waits for a hold or for the end of a patience gets there."""
        state = self.scheduler.state
        wake = state.wake
        if wake is None or not (state.line.size or state.swaps):
            return False
        self.now = max(self.now, wake)
        return True

    def let_a_process_answer(self) -> bool:
        for process in list(self.world.processes.values()):
            if process.is_told_to_stop:
                self.ended_by(process)
                return True
            if not process.is_ready:
                process.is_ready = True
                self.tell(
                    ProcessReady(
                        model=process.model,
                        incarnation=process.incarnation,
                        upstream="up",
                        pid=5,
                    )
                )
                return True
        return False

    def ended_by(self, process: Process) -> None:
        self.end_process(process)
        self.tell(self.end_of(process, failed=False))

    def replay(self) -> None:
        again = Scheduler(self.first)
        for event, now, effects in self.history:
            assert again.handle(event, now) == effects, "a history replays to the same effects"
