"""The scheduler process: lock, epoch, leftovers, actors, signals, end."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from qmsup import log, open_files, places
from qmsup.actors.copies import Copy, keep_copy
from qmsup.actors.life import Life
from qmsup.actors.scheduler import SchedulerActor
from qmsup.actors.signalled import reload_of, shutdown_of
from qmsup.actors.sockets import are_named, name_again
from qmsup.actors.tree import end_actors
from qmsup.config import Configuration
from qmsup.daemon.addresses import problems_with_control
from qmsup.daemon.adoption import take_over
from qmsup.daemon.epoch import first_incarnation, next_epoch
from qmsup.daemon.exits import Exit
from qmsup.daemon.folders import make_folders
from qmsup.daemon.holding import Hold
from qmsup.daemon.lock import SchedulerLock, see_that_nobody_holds
from qmsup.errors import ConfigError
from qmsup.ids import Epoch, Incarnation
from qmsup.log import Log
from qmsup.processes.child import Child
from qmsup.telemetry.reading import Reader
from qmsup.transport import context
from qmsup.units import Seconds, ms_from_seconds

_LOOK_EVERY = Seconds(2.0)
"""How soon it is noticed that somebody removed our sockets or locks."""

_log = Log("scheduler")


def run_scheduler(config: Configuration) -> Exit:
    """Run until told to end by INT or TERM (a second one: at once), or until an actor breaks. HUP reloads.

    Raises:
        ConfigError: a folder or an address cannot be used, or another scheduler uses it.
    """
    spec = config.spec
    log.set_up(level=spec.log_level, style=spec.log_format)
    for remark in config.remarks:
        _log.warning("config.remark", text=remark)
    open_files.raise_limit()  # each client, worker, child and reader takes some
    ending = Ending()
    ending.listen_to_signals()
    make_folders()
    see_that_nobody_holds()
    if problems := tuple(problems_with_control(spec.control)):
        raise ConfigError(problems)
    hold, epoch, copy = _take_over(config.text)
    survivors = take_over(spec)
    life = Life(
        epoch=epoch,
        endpoint=places.scheduler_endpoint(),
        config=config.path.resolve(),
        since=time.time(),
        open_reader=Reader,
        survivors=survivors,
    )
    actor = SchedulerActor.start(
        spec=spec,
        first_incarnation=_above(first_incarnation(epoch), survivors),
        life=life,
        copy=copy,
        on_end=lambda: ending.end(Exit.OK),
        on_break=lambda: ending.end(Exit.BROKEN),
    )
    code = ending.wait(
        told_to_end=lambda again: shutdown_of(actor, at_once=again),
        told_to_reload=lambda: reload_of(actor),
        look=lambda: hold.look(are_named=are_named, name_again=name_again),
    )
    have_ended = end_actors()
    if have_ended:
        context.destroy()  # the last words reach those who wait for them
    if hold.has_sockets:
        for socket in (places.scheduler_socket(), places.feed_socket()):
            socket.unlink(missing_ok=True)  # ZeroMQ leaves it
    hold.release()
    _log.info("scheduler.ended", code=int(code))
    if not have_ended:
        os._exit(code)  # the interpreter would wait for the thread that does not end
    return code


def _above(first: Incarnation, survivors: tuple[Child, ...]) -> Incarnation:
    """Numbers grow for ever, even where the count of lives was lost."""
    return Incarnation(max([first, *(child.record.incarnation + 1 for child in survivors)]))


def _take_over(text: str) -> tuple[Hold, Epoch, Copy]:
    """Make the folders this process's own, and keep a copy of the configuration's text in that of the state.

    Raises:
        ConfigError: another scheduler has one, or nothing can be written there.
    """
    try:
        state, sockets = SchedulerLock(places.lock_file()), _sockets_lock()
        epoch = next_epoch(places.state_dir())
        return Hold(state, sockets, epoch), epoch, keep_copy(text, places.config_copies())
    except OSError as error:
        message = (
            f"cannot write {error.filename or places.state_dir()} ({error.strerror}): make room there,"
            " or set QMSUP_STATE_DIR to a folder of yours"
        )
        raise ConfigError((message,)) from error


def _sockets_lock() -> SchedulerLock:
    try:
        return SchedulerLock(places.sockets_lock_file())
    except OSError as error:
        message = (
            f"cannot write into {places.runtime_dir()} ({error.strerror}):"
            " set QMSUP_RUNTIME_DIR to a folder of yours"
        )
        raise ConfigError((message,)) from error


class Ending:
    """How the process comes to its end: by signals, and by the first word of an actor."""

    def __init__(self) -> None:
        # A signal comes in the midst of anything, another signal's handling too: this queue bears that.
        self._said: SimpleQueue[Exit | signal.Signals] = SimpleQueue()
        # The kernel gives a signal to any thread, to another one than this after a SIGSTOP. Its handler runs in this
        # one, which sleeps on: only a descriptor that the other thread writes to wakes it.
        self._bell, self._ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)

    def close(self) -> None:
        """Give the descriptors back (tests; a process just ends)."""
        os.close(self._bell)
        os.close(self._ringer)

    def listen_to_signals(self) -> None:
        """From now on INT, TERM and HUP are words like others. For the main thread."""
        signal.set_wakeup_fd(self._ringer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda caught, _: self._said.put(signal.Signals(caught)))

    def end(self, code: Exit) -> None:
        """Say that the process is to end, from any thread."""
        self._said.put(code)
        with contextlib.suppress(BlockingIOError):  # full: it has been heard
            os.write(self._ringer, b"\0")

    def wait(
        self,
        *,
        told_to_end: Callable[[bool], None],
        told_to_reload: Callable[[], None],
        look: Callable[[], None] = lambda: None,
    ) -> Exit:
        """The code, once it has been said.

        Args:
            told_to_end: called for each INT and TERM until then; True = not the first one.
            told_to_reload: called for each HUP.
            look: called every two seconds while nobody says anything, until it is told to end.
        """
        is_told = False
        while not isinstance(said := self._next(), Exit):
            if said is None:
                if not is_told:
                    look()
                continue
            if said is signal.SIGHUP:
                _log.info("scheduler.told_to_reload", signal=said.name)
                told_to_reload()
                continue
            _log.info("scheduler.told_to_end", signal=said.name, again=is_told or None)
            told_to_end(is_told)
            is_told = True
        return said

    def _next(self) -> Exit | signal.Signals | None:
        while True:
            with contextlib.suppress(Empty):
                return self._said.get_nowait()
            if not self._poll.poll(ms_from_seconds(_LOOK_EVERY)):
                return None
            with contextlib.suppress(BlockingIOError):
                os.read(self._bell, 4096)
