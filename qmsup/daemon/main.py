"""The scheduler process: lock, epoch, leftovers, actors, signals, end."""

import signal
import threading
import time
from pathlib import Path

from qmsup import log, places
from qmsup.actors.scheduler import Life, SchedulerActor, shutdown_of
from qmsup.actors.tree import stop_actors
from qmsup.daemon.epoch import first_incarnation, next_epoch
from qmsup.daemon.exits import Exit
from qmsup.daemon.lock import LockedError, SchedulerLock
from qmsup.log import Log
from qmsup.processes.leftovers import stop_leftovers
from qmsup.spec import Spec

_log = Log("scheduler")


def run_scheduler(spec: Spec, config: Path) -> Exit:
    """Run until told to end by INT or TERM (a second one: at once), or until an actor breaks."""
    log.set_up(level=spec.log_level, style=spec.log_format)
    try:
        places.make_private(places.runtime_dir())
        state_dir = places.make_private(places.state_dir())
        lock = SchedulerLock(places.lock_file())
        epoch = next_epoch(state_dir)
        stop_leftovers()
    except LockedError as error:
        _log.error("scheduler.cannot_start", because=str(error))
        return Exit.UNUSABLE
    except OSError as error:
        _log.error(
            "scheduler.cannot_start",
            because=f"{error.filename}: {error.strerror}",
            advice="set QMSUP_RUNTIME_DIR and QMSUP_STATE_DIR to folders that can be written",
        )
        return Exit.UNUSABLE
    life = Life(epoch=epoch, endpoint=places.scheduler_endpoint(), config=config, since=time.time())
    ending = _Ending()
    actor = SchedulerActor.start(
        spec=spec,
        life=life,
        on_end=lambda: ending.end(Exit.OK),
        on_break=lambda: ending.end(Exit.BROKEN),
    )
    ending.listen_to_signals(actor)
    code = ending.wait()
    stop_actors()
    lock.release()
    _log.info("scheduler.ended", code=int(code))
    return code


class _Ending:
    """When and how the process is to end."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._code = Exit.OK
        self._was_told = False

    def end(self, code: Exit) -> None:
        self._code = code if not self._done.is_set() else self._code
        self._done.set()

    def wait(self) -> Exit:
        self._done.wait()
        return self._code

    def listen_to_signals(self, actor: pykka.ActorRef[SchedulerActor]) -> None:
        def tell(number: int, _frame: object) -> None:
            _log.info("scheduler.told_to_end", signal=signal.Signals(number).name)
            shutdown_of(actor, at_once=self._was_told)
            self._was_told = True

        signal.signal(signal.SIGTERM, tell)
        signal.signal(signal.SIGINT, tell)
