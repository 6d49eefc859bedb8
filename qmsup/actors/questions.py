"""Asking a child whether it is ready, or alive. The connection is watched by the actor's inbox; nothing here waits."""

from dataclasses import dataclass

from qmsup.actors.inbox import PollingInbox
from qmsup.actors.running import Running
from qmsup.core.lifecycle.events import ProbeAnswered, Readiness
from qmsup.processes import stop
from qmsup.processes.log_watch import LogWatch
from qmsup.processes.ports import Owner, owner_of
from qmsup.upstream.probe import Answer, Found, Probe


@dataclass(frozen=True, slots=True)
class ProbeSaw:
    """The probe under way has its answer."""

    answer: Answer


class Questions:
    """One at a time, to one child at a time."""

    __slots__ = ("_inbox", "_probe")

    def __init__(self, inbox: PollingInbox) -> None:
        """Ask nothing yet; `inbox` is the owner's."""
        self._inbox = inbox
        self._probe: Probe | None = None

    def begin(self, running: Running) -> ProbeAnswered | None:
        """Ask whether it is ready; None = ProbeSaw will tell."""
        if running.log_watch is not None:
            return _read_log(running, running.log_watch)
        try:
            probe = running.check.ask()
        except OSError as error:
            return ProbeAnswered(readiness=Readiness.NOT_YET, words=f"no probe: {error.strerror}")
        if probe is None:
            return ProbeAnswered(readiness=Readiness.READY)
        self._probe = probe
        saw = self._look(probe)
        return None if saw is None else judge(running, saw.answer)

    def end(self) -> None:
        """Close the connection, if there is one."""
        if self._probe is not None:
            self._inbox.forget(self._probe.fileno())
            self._probe.close()
            self._probe = None

    def _look(self, probe: Probe) -> ProbeSaw | None:
        answer = probe.look()
        if answer is not None:
            return ProbeSaw(answer)
        self._inbox.watch(probe.fileno(), lambda: self._look(probe), events=probe.events)
        return None


def judge(running: Running, answer: Answer) -> ProbeAnswered:
    """What an answer means: a ready one counts only from our own child."""
    if not running.check.understand(answer):
        is_answer = answer.found is not Found.REFUSED
        return ProbeAnswered(readiness=Readiness.NOT_YET, words=answer.words, is_answer=is_answer)
    return _ready(running, answer.words)


def _read_log(running: Running, watch: LogWatch) -> ProbeAnswered:
    if watch.saw():
        return _ready(running, "the line was in its log")
    words = "its log has no line yet that matches checkEndpoint"
    return ProbeAnswered(readiness=Readiness.NOT_YET, words=words)


def _ready(running: Running, words: str) -> ProbeAnswered:
    port = running.launch.port
    if _is_port_anothers(running):
        words = (
            f"port {port} is answered by another program, not by the child:"
            " end that, or choose another port"
        )
        return ProbeAnswered(readiness=Readiness.FOREIGN, words=words)
    return ProbeAnswered(readiness=Readiness.READY, words=words, is_answer=True)


def _is_port_anothers(running: Running) -> bool:
    if not running.launch.proves_port:
        return False
    return owner_of(running.launch.port, stop.pids_of(running.child)) is Owner.FOREIGN
