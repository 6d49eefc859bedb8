"""Asking a ready child for its slots now and then. The answer may take minutes; the actor's inbox waits for it."""

from dataclasses import dataclass

from qmsup.actors.inbox import PollingInbox
from qmsup.actors.running import Running
from qmsup.core.lifecycle.events import WorkSeen
from qmsup.core.lifecycle.liveness import Work
from qmsup.core.lifecycle.progress import Progress, Step
from qmsup.processes import work
from qmsup.processes.backends.choice import backend_of
from qmsup.units import Seconds
from qmsup.upstream.probe import Answer, Found, Probe

_PATH = "/slots"
_SLEEPS = "--sleep-idle-seconds"
"""The question would wake one that sleeps."""


@dataclass(frozen=True, slots=True)
class ProgressSaw:
    """The question has its answer."""

    probe: Probe
    answer: Answer


class ProgressWatch:
    """Of one child at a time, while it is ready."""

    __slots__ = ("_inbox", "_probe", "_progress", "_running")

    def __init__(self, inbox: PollingInbox) -> None:
        """Watch nothing yet; `inbox` is the owner's."""
        self._inbox = inbox
        self._running: Running | None = None
        self._progress: Progress | None = None
        self._probe: Probe | None = None

    @property
    def due(self) -> Seconds | None:
        """When `tend` is to be called next."""
        return None if self._progress is None else self._progress.due

    def follow(self, running: Running | None, now: Seconds) -> None:
        """This child is ready now; None = none is."""
        if running is self._running:
            return
        self.close()
        self._running = running
        if running is not None and _can_tell(running):
            self._progress = Progress(now)

    def tend(self, now: Seconds) -> WorkSeen | None:
        """Do what is due; what comes of it if the child hangs."""
        running, progress = self._running, self._progress
        if running is None or progress is None:
            return None
        match progress.step(now):
            case Step.ASK:
                self._ask(running, progress, now)
            case Step.LOOK:
                why = progress.looked(work.effort_of(running.child), now)
                return WorkSeen(work=Work(done=0), stalls=why) if why else None
            case None:
                pass
        return None

    def saw(self, told: ProgressSaw, now: Seconds) -> None:
        """Take notice of an answer; one to a question that was given up is ignored."""
        if told.probe is not self._probe or self._progress is None:
            return
        self._end_probe()
        if told.answer.found is Found.OTHER_STATUS:
            self._progress.cannot_tell()
        else:
            self._progress.answered(now)

    def close(self) -> None:
        """Watch nothing any more."""
        self._end_probe()
        self._running = self._progress = None

    def _ask(self, running: Running, progress: Progress, now: Seconds) -> None:
        try:
            self._probe = Probe(running.launch.host, running.launch.port, _PATH)
        except OSError:  # no descriptor is left for it
            progress.answered(now)
            return
        if (told := self._look(self._probe)) is not None:
            self.saw(told, now)

    def _look(self, probe: Probe) -> ProgressSaw | None:
        answer = probe.look()
        if answer is not None:
            return ProgressSaw(probe, answer)
        self._inbox.watch(probe.fileno(), lambda: self._look(probe), events=probe.events)
        return None

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._inbox.forget(self._probe.fileno())
            self._probe.close()
            self._probe = None


def _can_tell(running: Running) -> bool:
    argv = running.launch.argv
    is_awake = not any(word.partition("=")[0] == _SLEEPS for word in argv)
    return backend_of(running.spec.kind).tells_progress and running.launch.proves_port and is_awake
