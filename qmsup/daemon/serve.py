"""`qmsup serve`: the scheduler and one gunicorn per listener as children of one process, restarted when they die.

It decides nothing about models. It has one thread and waits for signals, so nothing here needs a lock.
"""

import contextlib
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from qmsup.config import load
from qmsup.daemon.addresses import problem_with
from qmsup.daemon.exits import Exit
from qmsup.daemon.member import Member, listener_member, scheduler_member
from qmsup.daemon.orphans import reap, stop_models, take_over_orphans
from qmsup.errors import ConfigError
from qmsup.log import Log
from qmsup.spec import OnExit, Spec
from qmsup.units import Seconds

_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
WATCHED = _STOPS | {signal.SIGCHLD, signal.SIGHUP}
_LISTENER_GRACE = Seconds(3.0)
"""From TERM to QUIT for a gunicorn whose relays have all lost their children already."""
_MODELS_GRACE = Seconds(3.0)
"""From TERM to KILL for models whose scheduler did not stop them."""
_MARGIN = Seconds(5.0)
_LOOK_EVERY = Seconds(1.0)
"""How often the file is looked at with `--watch`."""

_log = Log("serve")


class Serve:
    """Keeps the members of one configuration alive until told to stop."""

    def __init__(self, spec: Spec, config: Path, *, watch: bool = False) -> None:
        """Nothing is started yet.

        Args:
            spec: what the file says.
            config: the file.
            watch: reload whenever it changes.
        """
        self._config = config
        self._watched = Watched(config) if watch else None
        self._scheduler = scheduler_member(config)
        self._listeners = [listener_member(name, config) for name in spec.listeners]
        self._scheduler_grace = _grace_of(spec)
        self._on_exit = spec.on_exit
        self._is_urgent = False

    def run(self) -> Exit:
        """Block until stopped by INT or TERM, or until the scheduler says that it can never start."""
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        take_over_orphans()
        try:
            code = self._keep_alive()
            self._stop()
        finally:
            for member in self._members():
                member.kill_group()
        if code is Exit.OK and self._on_exit is OnExit.STOP:
            stop_models(_MODELS_GRACE)
        reap(())
        return code

    def _members(self) -> Iterable[Member]:
        return (self._scheduler, *self._listeners)

    def _keep_alive(self) -> Exit:
        while True:
            now = _now()
            for member in self._members():
                member.start_if_due(now)
            caught = _next_signal(self._until_next_look(now))
            if caught in _STOPS:
                return Exit.OK
            if caught == signal.SIGHUP or (self._watched is not None and self._watched.changed()):
                self._reload()
            for member in self._members():
                # A listener that cannot use its configuration is no worse than one that keeps dying: its port
                # stays shut, the others go on. Without a scheduler there is nothing to go on with; but what stands
                # in the way of a later one (a full disk, a file in the middle of an edit) may pass.
                is_unusable = member.reap(_now()) == Exit.UNUSABLE
                if is_unusable and member is self._scheduler and member.starts == 1:
                    return Exit.UNUSABLE
            reap({member.pid for member in self._members()})

    def _until_next_look(self, now: Seconds) -> Seconds:
        starts = [m.start_at for m in self._members() if m.start_at is not None]
        latest = now + (60.0 if self._watched is None else _LOOK_EVERY)
        return Seconds(max(0.0, min([*starts, latest]) - now))

    def _reload(self) -> None:
        """The scheduler judges the file and tells the listeners; here only its end may take longer from now on."""
        _log.info("serve.reload", file=str(self._config))
        self._scheduler.pass_on(signal.SIGHUP)
        with contextlib.suppress(ConfigError):  # the scheduler says what is wrong
            spec = load(self._config)
            self._on_exit = spec.on_exit
            self._scheduler_grace = max(self._scheduler_grace, _grace_of(spec))

    def _stop(self) -> None:
        # The scheduler goes first: it refuses what waits, lets answers under way end, and stops the models.
        # A listener that went first would hold its clients' connections open for streams without end.
        _log.info("serve.stopping")
        self._scheduler.signal(signal.SIGTERM)
        if not self._await([self._scheduler], self._scheduler_grace):
            _log.error(
                "serve.gave_up_waiting", name=self._scheduler.name, grace_s=self._scheduler_grace
            )
        for listener in self._listeners:
            listener.signal(signal.SIGTERM)
        if not self._await(self._listeners, _LISTENER_GRACE):
            for listener in self._listeners:
                listener.signal(signal.SIGQUIT)
            self._await(self._listeners, _LISTENER_GRACE)
        _log.info("serve.stopped")

    def _await(self, members: Iterable[Member], grace: Seconds) -> bool:
        """Whether all ended within the grace; a second INT or TERM makes everybody hurry."""
        deadline = _now() + grace
        waiting = [m for m in members if not m.has_ended()]
        while waiting and (left := deadline - _now()) > 0:
            if _next_signal(Seconds(left)) in _STOPS and not self._is_urgent:
                self._is_urgent = True
                _log.warning("serve.hurrying", because="told to stop a second time")
                for member in waiting:
                    member.signal(signal.SIGTERM)
            waiting = [m for m in waiting if not m.has_ended()]
        return not waiting


class Watched:
    """A file that is looked at now and then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._seen = self._look()

    def changed(self) -> bool:
        """Whether it has changed since the last True, and was the same in two looks: nobody is writing it just now."""
        before, self._seen = self._seen, self._look()
        if self._seen in (None, self._known) or self._seen != before:
            return False
        self._known = self._seen
        return True

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:  # an editor may remove it and write it anew
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _grace_of(spec: Spec) -> Seconds:
    longest = max((model.stop_grace for model in spec.models.values()), default=Seconds(0.0))
    return Seconds(spec.shutdown_drain + longest + _MARGIN)


def _next_signal(timeout: Seconds) -> int | None:
    caught = signal.sigtimedwait(WATCHED, timeout)
    return caught.si_signo if caught is not None else None


def _now() -> Seconds:
    return Seconds(time.monotonic())


def check_ports(spec: Spec) -> None:
    """See that every listener's address can be had, before anything is started.

    Raises:
        ConfigError: one problem for each address that cannot.
    """
    problems = tuple(
        p for listener in spec.listeners.values() if (p := problem_with(listener)) is not None
    )
    if problems:
        raise ConfigError(problems)
