"""What a process manager does with its one child: spawn it, ask it, end it. Nothing here waits, nothing decides.

The child's pidfd and the probe's connection are watched by the actor's inbox, and come back as ChildEnded and ProbeSaw.
"""

import os
import secrets
import time
from dataclasses import dataclass, replace

from qmsup.actors.inbox import PollingInbox
from qmsup.actors.paperwork import Paperwork
from qmsup.actors.questions import Questions, judge
from qmsup.actors.running import Running
from qmsup.core.lifecycle.events import (
    Adopted,
    Exited,
    Gone,
    ProbeAnswered,
    Spawned,
    SpawnFailed,
    WorkSeen,
)
from qmsup.core.lifecycle.liveness import Work
from qmsup.errors import ChildError
from qmsup.ids import Incarnation
from qmsup.log import Log
from qmsup.processes import output, stop, work
from qmsup.processes.backends import generic
from qmsup.processes.backends.choice import backend_of
from qmsup.processes.child import Child
from qmsup.processes.command import Launch, fixed_port, launch
from qmsup.processes.log_watch import LogWatch
from qmsup.processes.ports import PortPool, is_taken
from qmsup.processes.rotation import LogKeeper
from qmsup.processes.spawn import spawn
from qmsup.processes.stop import AloneAt
from qmsup.processes.stop_command import StopCommand, run_stop_command
from qmsup.spec import ModelSpec
from qmsup.units import Seconds
from qmsup.upstream.probe import Answer
from qmsup.upstream.readiness import LOG_CHECK, ReadinessCheck

_log = Log("child")
_NONCE_BYTES = 16
_KNOWN_BY_NONCE = Seconds(0.5)
"""A child that is ready by then has its pid and that written in one."""


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """The leader of a child is a zombie now."""

    child: Child


@dataclass(frozen=True, slots=True)
class StopCommandEnded:
    """The `cmdStop` of the child has ended, well or not."""


class ChildHands:
    """At most one child at a time, and those that were given up."""

    __slots__ = (
        "_alone",
        "_base",
        "_given_up",
        "_has_run_stop_command",
        "_has_told_end",
        "_inbox",
        "_paperwork",
        "_ports",
        "_questions",
        "_stop_command",
        "_was_told_to_end",
        "running",
    )

    def __init__(self, inbox: PollingInbox, ports: PortPool) -> None:
        """Hold nothing yet; `inbox` is the owner's, `ports` are shared with all owners."""
        self._inbox = inbox
        self._ports = ports
        self._questions = Questions(inbox)
        self._given_up: list[Child] = []
        self._alone: AloneAt | None = None
        self._has_told_end = False
        self._stop_command: StopCommand | None = None
        self._has_run_stop_command = False
        self._was_told_to_end = False
        self._paperwork = Paperwork()
        self._base = dict(os.environ)  # a plain copy: `os.environ` decodes each entry at each look
        self.running: Running | None = None

    def spawn(self, spec: ModelSpec, incarnation: Incarnation) -> Spawned | SpawnFailed:
        """Start the program on a port of its own."""
        port = None
        try:
            port = fixed_port(spec) or self._ports.take()
            nonce = secrets.token_hex(_NONCE_BYTES)
            run = launch(spec, port, nonce=nonce, base=self._base)
            child = spawn(run, model=spec.id, incarnation=incarnation)
        except (ChildError, OSError) as error:
            if port is not None:
                self._ports.give_back(port)
            return SpawnFailed(reason=str(error))
        asks_slots = backend_of(spec.kind).tells_slots
        check = ReadinessCheck(spec.ready_check, run.host, run.port, asks_slots=asks_slots)
        self._take_up(child, run, check, spec)
        self._paperwork.note(child, by=Seconds(time.monotonic() + _KNOWN_BY_NONCE))
        return Spawned(can_be_asked=check.asks_http, can_be_watched=run.proves_port)

    def _take_up(self, child: Child, run: Launch, check: ReadinessCheck, spec: ModelSpec) -> None:
        watch = None
        if spec.ready_check.startswith(LOG_CHECK):
            pattern = spec.ready_check.removeprefix(LOG_CHECK)
            watch = LogWatch(child.log, child.log_start, pattern)
        self.running = Running(
            child=child,
            launch=run,
            check=check,
            log_watch=watch,
            log_keeper=LogKeeper(child.log, Seconds(time.monotonic())),
            spec=spec,
        )
        self._alone = None
        self._has_told_end = self._has_run_stop_command = self._was_told_to_end = False
        self._inbox.watch(child.pidfd, lambda: ChildEnded(child) if child.exit() else None)

    def adopt(self, child: Child, spec: ModelSpec) -> Adopted:
        """Go on with a child that a former scheduler started, and that answers.

        Raises:
            ChildError: by its configuration it could not have been started.
        """
        record = child.record
        run = launch(spec, record.port, nonce=record.nonce, base=self._base)
        run = replace(run, host=record.host)
        check = ReadinessCheck(spec.ready_check, run.host, run.port)
        check.total_slots, check.context = record.total_slots, record.context
        self._ports.claim(record.port)
        self._take_up(child, run, check, spec)
        return Adopted(
            incarnation=Incarnation(record.incarnation),
            spawned=Spawned(can_be_asked=check.asks_http, can_be_watched=run.proves_port),
        )

    def note_ready(self) -> None:
        """Let another scheduler go on with the child should this one die."""
        running = self._child()
        slots, context = running.check.total_slots, running.check.context
        self._paperwork.note(running.child, is_ready=True, total_slots=slots, context=context)

    @property
    def paperwork_due(self) -> Seconds | None:
        """When records are to be written or erased."""
        return self._paperwork.due

    def do_paperwork(self, now: Seconds) -> None:
        """Write and erase records if it is time to, once all else is done."""
        if (due := self._paperwork.due) is not None and now >= due:
            self._paperwork.do()

    @property
    def log_due(self) -> Seconds | None:
        """When the child's log is to be looked after next."""
        return self.running.log_keeper.due if self.running is not None else None

    def tend_log(self, now: Seconds) -> None:
        """Keep the child's log within bounds, if it is time to."""
        if self.running is not None and self.running.log_keeper.is_to_be_tended(now):
            self.running.log_keeper.tend(now)

    def start_probe(self) -> ProbeAnswered | None:
        """Ask whether it is ready; None = ProbeSaw will tell."""
        return self._questions.begin(self._child())

    def judge(self, answer: Answer) -> ProbeAnswered:
        """What an answer means."""
        return judge(self._child(), answer)

    def look_at_work(self) -> WorkSeen:
        """What all of the child has done so far."""
        seen = work.look_at(self._child().child)
        return WorkSeen(
            work=Work(done=seen.done, is_stopped=seen.is_stopped, is_traced=seen.is_traced)
        )

    def end_probe(self) -> None:
        """Close the probe's connection, if there is one."""
        self._questions.end()

    def terminate(self) -> None:
        """Run `cmdStop`, or send TERM to all of the child, and see meanwhile what there is of it."""
        child = self._child().child
        if child.record.is_ready:
            # A stop that was begun is finished, if need be by another scheduler.
            self._paperwork.note(child, is_ready=False)
        self._alone = self._ask_to_end(self._child())
        self._was_told_to_end = True

    def stop_command_ended(self) -> None:
        """Take notice of that. One that failed has stopped nothing, so TERM follows."""
        code = self._end_stop_command()
        if code and self.running is not None:
            model = self.running.spec.id
            _log.warning("child.stop_command_failed", model=model, code=code, hint="see its log")
            stop.terminate(self.running.child)

    def _ask_to_end(self, running: Running) -> AloneAt | None:
        if self._has_run_stop_command:
            return self._alone
        if running.launch.stop_argv:
            try:
                command = run_stop_command(running.launch, running.child)
            except ChildError as error:
                _log.warning("child.stop_command_failed", model=running.spec.id, error=str(error))
            else:
                self._stop_command = command
                self._has_run_stop_command = True
                self._inbox.watch(command.pidfd, StopCommandEnded)
                return stop.look_around(running.child)
        return stop.terminate(running.child)

    def _end_stop_command(self) -> int | None:
        command, self._stop_command = self._stop_command, None
        if command is None:
            return None
        self._inbox.forget(command.pidfd)
        return command.close()

    def kill(self) -> Gone | None:
        """Send KILL to what came from the child; Gone once its leader has ended and nothing else lives."""
        child = self._child().child
        is_anything_alive = stop.kill_all(child, self._alone)
        return None if is_anything_alive else self._gone_if_ended(child)

    def see_rest(self) -> Gone | None:
        """Gone once nothing that came from the child lives, its leader neither."""
        child = self._child().child
        is_anything_alive = stop.is_anything_left(child, self._alone)
        return None if is_anything_alive else self._gone_if_ended(child)

    def _gone_if_ended(self, child: Child) -> Gone | None:
        if child.exit() is None:
            return None
        self._inbox.forget(child.pidfd)
        lines = "" if self._has_told_end else output.last_lines(child.log, child.log_start)
        self._end_stop_command()
        self._bury(child)
        self._let_go()
        return Gone(last_lines=lines)

    def ended(self, child: Child, *, wants_reason: bool) -> Exited | None:
        """Take notice of a leader's end, and of why it came if that is wanted; None = it is one that was given up."""
        self._inbox.forget(child.pidfd)
        if self.running is None or child is not self.running.child:
            self._given_up.remove(child)
            stop.kill_all(child)
            self._bury(child)
            return None
        self._has_told_end = True
        status = child.exit()
        assert status is not None
        if not wants_reason:
            return Exited(how=status.words)
        lines = output.last_lines(child.log, child.log_start)
        meaning = backend_of(self.running.spec.kind).meaning(status, lines)
        # Not every program says that it could not bind, and the last lines of one that does may be lost.
        if status.signal is None and not self._was_told_to_end and _has_lost_port(self.running):
            meaning = generic.port_taken()
        return Exited(
            how=status.words,
            hint=meaning.hint,
            last_lines=lines,
            port_taken=meaning.port_taken,
        )

    def give_up(self) -> None:
        """Stop waiting for a child that KILL does not end. It is reaped should it ever end."""
        child = self._child().child
        _log.error("child.stuck", model=child.record.model, pid=child.pid)
        self._given_up.append(child)
        self._end_stop_command()
        self._let_go()

    def close(self, *, keep: bool, grace: Seconds) -> None:
        """End the child, or leave it running. Waits; for the end of the owner."""
        self.end_probe()
        self._paperwork.do()
        for child in self._given_up:
            self._inbox.forget(child.pidfd)
            child.let_go()
        self._given_up.clear()
        if self.running is None:
            return
        running = self.running
        self._let_go()
        child = running.child
        self._inbox.forget(child.pidfd)
        if keep:
            child.let_go()
        elif self._end(running, grace):
            self._ports.give_back(child.record.port)
        else:
            _log.error("child.stuck", model=child.record.model, pid=child.pid)
            child.let_go()

    def _end(self, running: Running, grace: Seconds) -> bool:
        self._ask_to_end(running)
        has_ended = stop.end(running.child, grace=grace)
        self._end_stop_command()
        return has_ended

    def _let_go(self) -> None:
        if self.running is not None:
            self.running.log_keeper.close()
            self.running = None

    def _child(self) -> Running:
        assert self.running is not None, (
            "the lifecycle machine acts on a child only while there is one"
        )
        return self.running

    def _bury(self, child: Child) -> None:
        child.reap()
        self._paperwork.strike(child)
        self._ports.give_back(child.record.port)


def _has_lost_port(running: Running) -> bool:
    launch = running.launch
    return launch.proves_port and is_taken(launch.port, stop.pids_of(running.child))
