"""The scheduler process: lock, epoch, leftovers, actors, signals, end."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from qmsup import log, places
from qmsup.actors.life import Life
from qmsup.actors.scheduler import SchedulerActor, shutdown_of
from qmsup.actors.tree import end_actors
from qmsup.daemon.epoch import first_incarnation, next_epoch
from qmsup.daemon.exits import Exit
from qmsup.daemon.folders import make_folders
from qmsup.daemon.lock import SchedulerLock
from qmsup.log import Log
from qmsup.processes.leftovers import stop_leftovers
from qmsup.spec import Spec

_log = Log("scheduler")


def run_scheduler(spec: Spec, config: Path) -> Exit:
    """Run until told to end by INT or TERM (a second one: at once), or until an actor breaks.

    Raises:
        ConfigError: a folder cannot be used, or another scheduler uses it.
    """
    log.set_up(level=spec.log_level, style=spec.log_format)
    make_folders()
    lock = SchedulerLock(places.lock_file())
    epoch = next_epoch(places.state_dir())
    stop_leftovers()
    ending = Ending()
    life = Life(epoch=epoch, endpoint=places.scheduler_endpoint(), config=config, since=time.time())
    actor = SchedulerActor.start(
        spec=spec,
        first_incarnation=first_incarnation(epoch),
        life=life,
        on_end=lambda: ending.end(Exit.OK),
        on_break=lambda: ending.end(Exit.BROKEN),
    )
    _listen_to_signals(lambda again: shutdown_of(actor, at_once=again))
    code = ending.wait()
    end_actors()
    lock.release()
    _log.info("scheduler.ended", code=int(code))
    return code


class Ending:
    """How the process ends: the first word counts."""

    def __init__(self) -> None:
        self._said = threading.Event()
        self._code = Exit.OK

    def end(self, code: Exit) -> None:
        """Say that the process is to end, from any thread."""
        if not self._said.is_set():
            self._code = code
            self._said.set()

    def wait(self) -> Exit:
        """The code, once it has been said."""
        self._said.wait()
        return self._code


def _listen_to_signals(end: Callable[[bool], None]) -> None:
    was_told = False

    def tell(number: int, _frame: object) -> None:
        nonlocal was_told
        _log.info(
            "scheduler.told_to_end", signal=signal.Signals(number).name, again=was_told or None
        )
        end(was_told)
        was_told = True

    signal.signal(signal.SIGTERM, tell)
    signal.signal(signal.SIGINT, tell)
