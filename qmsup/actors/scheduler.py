"""The scheduler actor: owns the core's state, stamps the time on each event, carries out what comes back.

Its inbox is the ROUTER socket, the worker processes' pidfds, one timer and what other actors tell it, all waited
for at once. It decides nothing: every choice is `core.scheduling`'s.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import assert_never, cast

import pykka
from typing_extensions import override

from qmsup import places
from qmsup.actors import wishes
from qmsup.actors.books import Booked, Books
from qmsup.actors.chronicle import Chronicle, Written, header_of
from qmsup.actors.config_reader import ConfigRead, ConfigRefused
from qmsup.actors.copies import Copy
from qmsup.actors.enduring import QuestionLost
from qmsup.actors.feed import FeedActor, FeedWanted, Subscribed
from qmsup.actors.gateway import Asked, Gateway, Heard
from qmsup.actors.host_news import HostSeen
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.actors.job_desk import JobDesk
from qmsup.actors.job_news import BeginJob, EndJob, KeepJob, KnownJobs
from qmsup.actors.life import Life
from qmsup.actors.names import NameAgain, name_again
from qmsup.actors.orders import Orders
from qmsup.actors.ownership import is_its_own
from qmsup.actors.recovery import recovered
from qmsup.actors.reload import Reload
from qmsup.actors.route_desk import RouteDesk
from qmsup.actors.routed_messages import Routed
from qmsup.actors.sightings import Kept, MemorySeen
from qmsup.actors.signalled import ReloadNow, StopNow
from qmsup.actors.standing import read_former
from qmsup.actors.state_store import StateOnDisk
from qmsup.actors.tree import ProcessTree
from qmsup.actors.verbs import Verbs
from qmsup.actors.watching import Watching
from qmsup.actors.worker_messages import Greeted
from qmsup.actors.workers import Workers
from qmsup.core.scheduling import invariants, views
from qmsup.core.scheduling.effects import ArmWake, Refuse
from qmsup.core.scheduling.events import (
    AskWithdrawn,
    ConfigApplied,
    Event,
    ListenerLost,
    Woke,
)
from qmsup.core.scheduling.scheduler import Scheduler
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import Incarnation
from qmsup.log import Log
from qmsup.spec import OnExit, Spec
from qmsup.transport.remote import Doors, open_remote
from qmsup.transport.router import RouterSocket
from qmsup.units import Seconds

_ASKED_AGAIN = Seconds(15.0)
"""Who waits for an answer repeats the question within two seconds; who has not for this long is gone."""

_log = Log("scheduler")


class SchedulerActor(pykka.ThreadingActor):
    """Tell it events; it answers nobody but through ZeroMQ. Frames come as `list[(identity, frames)]`."""

    def __init__(
        self,
        *,
        spec: Spec,
        first_incarnation: Incarnation,
        life: Life,
        copy: Copy | None = None,
        on_end: Callable[[], None],
        on_break: Callable[[], None],
    ) -> None:
        """Made by the assembly.

        Args:
            spec: the configuration in force.
            first_incarnation: the number of the next start of a child.
            life: which life of the process this is.
            copy: the configuration's text, for the workers; None = they go by what they have read.
            on_end: called once shutdown is complete.
            on_break: called when this actor cannot go on; the process is to end.
        """
        super().__init__()
        self._inbox = cast(
            "PollingInbox", self.actor_inbox
        )  # made below; pykka knows it as any inbox
        self._spec = spec
        self._core = Scheduler(spec, first_incarnation)
        self._life = life
        self._copy = copy
        self._on_end = on_end
        self._on_break = on_break
        self._checks = os.environ.get("QMSUP_CHECK") == "1"
        self._wake_at: Seconds | None = None
        self._next_roll_call: Seconds | None = None

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def on_start(self) -> None:
        # The socket is made here: ZeroMQ sockets belong to the thread that made them.
        try:
            self._router = RouterSocket(self._life.endpoint)
            self._remote = open_remote(self._spec.control)
            doors = self._router if self._remote is None else Doors(self._router, self._remote)
            self._gateway = Gateway(doors, self._life.epoch, self._copy)
            self._workers = Workers(self._inbox, partial(views.tally, self._core.state))
            self._processes = ProcessTree(self._spec, self.actor_ref.tell)
            self._state = StateOnDisk()
            self._jobs = JobDesk(self.actor_ref.tell, self._on_break)
            self._orders = Orders(
                self._gateway, self._processes, self._jobs, self._end, self._state.remember
            )
            self._reload = Reload(self._spec, self._life, self._gateway, self.actor_ref.tell)
            offset = time.time() - _now()
            tell = self.actor_ref.tell
            feed = FeedActor.start(
                endpoint=places.feed_endpoint(), epoch=self._life.epoch, tell=tell
            )
            header = header_of(self._spec, self._life.epoch, self._core.state)
            memory, store = Kept(), self._state
            self._chronicle = Chronicle(
                header, feed=feed, store=store, offset=offset, memory=memory
            )
            self._books = Books(tell, feed, self._state, self._life.epoch, lambda: self._spec)
            self._gateway.on_activity = self._books.take
            self._routes = RouteDesk(
                self._spec,
                epoch=self._life.epoch,
                state=self._core.state,
                gateway=self._gateway,
                handle=self._handle,
                report=tell,
            )
        except Exception:
            _log.exception("scheduler.cannot_start")
            self._on_break()
            raise
        self._watching = Watching(self._life.open_reader, self.actor_ref.tell, memory)
        self._verbs = self._made_verbs()
        self._recall(offset, memory)
        self._watching.tell(self._core.state)
        self._inbox.watch(self._router.fileno(), lambda: self._router.receive() or None, eager=True)
        for keeper in self._router.doorkeepers:
            self._inbox.watch(keeper.fileno(), keeper.look)
        if (remote := self._remote) is not None:
            self._inbox.watch(remote.fileno(), lambda: remote.receive() or None, eager=True)
        _log.info("scheduler.started", epoch=self._life.epoch, endpoint=self._life.endpoint)
        wishes.preload(self._spec, self.actor_ref.tell)

    def _made_verbs(self) -> Verbs:
        return Verbs(
            life=self._life,
            state=self._core.state,
            spec=lambda: self._spec,
            gateway=self._gateway,
            routes=self._routes,
            reload=self._reload,
            chronicle=self._chronicle,
            books=self._books,
            watching=self._watching,
            handle=self._handle,
            tell=self.actor_ref.tell,
        )

    def _recall(self, offset: float, memory: Kept) -> None:
        """Know how things stood, and what was measured, before the first model is wanted."""
        try:
            survivors, workers = self._life.survivors, self._workers
            former = read_former(self._state.standing(), offset)
            if former is not None:
                memory.floor = former.floor
            left = recovered(former, survivors, self._spec, workers, _now())
            if left is not None:
                self._handle(left)
            for child in survivors:
                self._processes.adopt(child)
            for known in self._state.known_of(self._spec.models.values()):
                self._handle(known)
        except Exception:
            _log.exception("scheduler.cannot_start")
            self._on_break()
            raise

    @override
    def on_stop(self) -> None:
        self._chronicle.journal.flush()
        self._workers.close()
        self._inbox.forget(self._router.fileno())
        for keeper in self._router.doorkeepers:
            self._inbox.forget(keeper.fileno())
        self._router.close()
        if self._remote is not None:
            self._inbox.forget(self._remote.fileno())
            self._remote.close()
        self._inbox.close()

    @override
    def on_failure(self, *_: object) -> None:
        # pykka cannot restart an actor: the process ends, and its supervisor starts a fresh one.
        _log.exception("scheduler.failed")
        self._processes.keep_children()  # the fresh one goes on with them
        self._orders.write_log()
        self._on_break()

    @override
    def on_receive(self, message: object) -> None:
        match message:
            case list():
                for sender, frames in message:
                    for frame in frames:
                        self._read(sender, frame)
            case TimeIsUp():
                self._look_at_the_clock()
            case StopNow():
                self._end()  # the tree ends then, and each manager its child
            case ReloadNow():
                self._reload.begin(None)
            case NameAgain():
                name_again(places.scheduler_socket(), self._router.name_again)
            case _:
                self._take_in(message)
        # First whoever waits for an answer, then who reads of it, and at last who wakes up a thread beside this one.
        self._gateway.send_gathered()
        self._orders.write_log()
        self._watching.tell(self._core.state)
        self._chronicle.keep_promises(self._core.state)
        self._set_alarm()

    def _take_in(self, message: object) -> None:
        """What other actors tell."""
        match message:
            case ConfigRead():
                self._apply(message)
            case ConfigRefused():
                self._reload.refuse(message)
            case Written(ask=ask):
                self._gateway.reply(ask, self._chronicle.on_disk.about())
            case FeedWanted(prefixes=prefixes):
                self._chronicle.onlooker.want(prefixes, _now())
                self._books.want(prefixes)
                message.heard()
            case HostSeen():
                self._routes.seen(message)
            case Booked() | QuestionLost():
                message.tell(self._gateway)
            case Subscribed(ask=ask):
                recent = self._chronicle.onlooker.recent
                self._gateway.reply(ask, message.body(self._life.epoch, recent))
            case MemorySeen(reading=reading):
                self._watching.reading = self._chronicle.onlooker.reading = reading
                self._chronicle.onlooker.stir(_now())
            case BeginJob() | KeepJob() | EndJob() | KnownJobs():
                self._jobs.take(message, self._core.state, self._handle)
            case _:
                self._handle(message)  # type: ignore[arg-type] # actors tell events, nothing else
                self._watching.heard(message)
                self._processes.keep_only(self._core.state.models)

    def _read(self, sender: bytes, frame: bytes) -> None:
        match self._gateway.read(sender, frame):
            case Heard() as heard:
                self._hear(heard)
            case Greeted(event=joined) as greeted:
                if self._workers.greet(joined, _now(), self._handle):
                    self._gateway.welcome(joined.listener)
                    self._handle(joined)
                    self._routes.greeted(greeted)
            case Asked() as asked:
                self._verbs.answer(asked, _now())
            case None:
                pass
            case unexpected:
                assert_never(unexpected)

    def _hear(self, heard: Heard) -> None:
        worker, said = heard.worker, heard.said
        now = _now()
        if not self._workers.hear(worker, now):
            self._gateway.ask_to_greet(worker)
        elif isinstance(said, Routed):
            self._routes.ask(said)
        elif not isinstance(said, views.Tally):
            is_heard = is_its_own(worker, said, self._core.state, self._routes.worker_of)
            if is_heard and not self._routes.takes(said):
                self._handle(said, now)
        else:
            known = self._routes.tally(worker, views.tally(self._core.state, worker))
            if not self._workers.agree(worker, said, known):
                self._gateway.ask_to_greet(worker)

    def _handle(self, event: Event, now: Seconds | None = None) -> None:
        core, now = self._core, _now() if now is None else now
        try:
            effects = core.handle(event, now)
        except Exception:
            # What it could not bear is the very thing that a replay needs.
            self._chronicle.note(Turn(core.state.event, now, event, ()))
            self._chronicle.journal.flush()
            raise
        turn = Turn(core.state.event, now, event, effects)
        self._books.note(turn, Seconds(_now() - now))
        self._chronicle.note(turn)
        for effect in effects:
            if type(effect) is ArmWake:
                self._wake_at = effect.at
                continue
            self._watching.ordered(effect)
            self._orders.carry_out(effect)
            if type(effect) is Refuse:
                self._routes.over(effect.request)
        if type(event) is ListenerLost:
            self._routes.lost(event.listener)
        if self._checks:
            invariants.check(self._core.state, _now())

    def _apply(self, read: ConfigRead) -> None:
        state = self._core.state
        if state.ending is not None:
            self._reload.refuse_at_end(read.ask)
            return
        self._spec = read.spec
        self._processes.apply(read.spec)  # first: a model that is new may be wanted at once
        self._handle(ConfigApplied(spec=read.spec))
        self._watching.stir()
        self._processes.keep_only(state.models)
        self._state.recall(read.spec.models.values(), self.actor_ref.tell)
        self._routes.apply(read.spec)
        self._gateway.configure(read.copy, state.listeners)
        self._reload.tell(read)

    def _end(self) -> None:
        self._chronicle.end(self._core.state)  # before the writers are told to end, too
        if self._spec.on_exit is OnExit.KEEP:
            self._processes.keep_children()
        self._on_end()

    def _look_at_the_clock(self) -> None:
        now = _now()
        self._chronicle.work(self._core.state, self._spec, now)
        for event in self._workers.silent_since(now):
            self._handle(event)
        self._routes.work()
        if self._wake_at is not None and now >= self._wake_at:
            self._wake_at = None
            self._handle(Woke())
        if self._next_roll_call is not None and now >= self._next_roll_call:
            self._next_roll_call = None
            for ask in self._gateway.vanished():
                self._handle(AskWithdrawn(ask=ask))

    def _set_alarm(self) -> None:
        if self._next_roll_call is None and self._gateway.is_awaited:
            self._next_roll_call = Seconds(_now() + _ASKED_AGAIN)
        wishes = (
            self._wake_at,
            self._workers.next_check(),
            self._next_roll_call,
            self._chronicle.due,
            self._routes.due,
            self._watching.due,
        )
        self._inbox.wake_at(min((t for t in wishes if t is not None), default=None))


def _now() -> Seconds:
    return Seconds(time.monotonic())
