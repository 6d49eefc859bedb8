"""Keeps `state.db` in a thread of its own: a disk that is full or slow is no matter of the scheduler's."""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import pykka
from typing_extensions import override

from qmsup import places
from qmsup.actors import activity_table, footprints
from qmsup.actors.enduring import Enduring
from qmsup.actors.finished import Row
from qmsup.actors.inbox import PollingInbox, TimeIsUp
from qmsup.actors.state_file import is_damaged, open_state, set_aside
from qmsup.core.scheduling.effects import Remember
from qmsup.core.scheduling.memory_events import FootprintMeasured
from qmsup.log import Log
from qmsup.spec import ModelSpec
from qmsup.units import Seconds

_WAIT_AT_START = Seconds(5.0)
"""A disk that takes longer is not waited for: models are then sized by their estimates until it has answered."""
_TRIED_AGAIN_AFTER = Seconds(5.0)
"""How things stand, where it could not be written."""
_TRIMMED_AFTER = 1000
"""Rows of activity."""
_log = Log("state")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Tell what is known of these models, each as an event.

    Attributes:
        tell: takes the events, in the store's thread; None = they are the answer.
    """

    models: tuple[ModelSpec, ...]
    tell: Callable[[FootprintMeasured], None] | None = None


@dataclass(frozen=True, slots=True)
class KeepStanding:
    """Keep how things stand, in place of what was kept before."""

    text: str


@dataclass(frozen=True, slots=True)
class RecallStanding:
    """Tell how things stood; "" = nobody knows."""


@dataclass(frozen=True, slots=True)
class KeepActivity:
    """Keep what became of requests."""

    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class RecallActivity:
    """Tell what became of the last requests, so many at most."""

    most: int


class StateStore(Enduring):
    """Tell it Remember, Recall, KeepStanding, RecallStanding, KeepActivity and RecallActivity.

    What is told in one order is written in that order. How things stand is believed to be kept by whoever told it, and
    told anew only when it changes: so it is owed until it is on disk, whatever hindered that.
    """

    PART = "state"

    def __init__(self, path: Path) -> None:
        """The file is not touched before it is needed."""
        super().__init__()
        self._inbox = cast("PollingInbox", self.actor_inbox)  # made below
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._is_in_trouble = False
        self._owed: str | None = None
        """How things stand, as long as it is not on disk."""
        self._standing: str | None = None
        """The same, on disk or not."""
        self._added = _TRIMMED_AFTER
        """Rows of activity since the oldest were dropped; a former life may have left many."""

    @staticmethod
    @override
    def _create_actor_inbox() -> PollingInbox:
        return PollingInbox()

    @override
    def take(self, message: object) -> list[FootprintMeasured] | list[Row] | str:
        if isinstance(message, KeepStanding):
            self._owed = self._standing = message.text
        if self._connection is not None and not self._path.exists():
            self._close()  # somebody removed it: what is written to it is nowhere
            self._owed = self._standing
            _log.warning("state.removed", file=str(self._path), hint="a new one is begun")
        if self._owed is not None:  # where that breaks, it costs this message nothing
            self.attempt("how things stand", partial(self._keep_standing, self._owed))
        match message:
            case RecallStanding():
                told: list[str] = []
                self._attempt(lambda db: told.extend(_standing(db)))
                return "".join(told)
            case KeepActivity(rows=rows):
                self._attempt(lambda db: self._keep_activity(db, rows))
            case RecallActivity(most=most):
                last: list[Row] = []
                self._attempt(lambda db: last.extend(activity_table.recent(db, most)))
                return last
            case Remember():
                key = footprints.key_of(message.argv)
                self._attempt(lambda db: footprints.keep(db, key, message))
            case Recall(models=models, tell=tell):
                found: list[FootprintMeasured] = []
                self._attempt(lambda db: found.extend(_known_of(db, models)))
                if tell is not None:
                    _pass_on(found, tell)
                return found
            case _:
                assert isinstance(message, KeepStanding | TimeIsUp), "nothing else is told"
        return ""

    @override
    def mend(self, message: object) -> None:
        # What was begun is rolled back by this, and whatever comes next begins with the file as it is on disk.
        self._close()
        self._plan()

    @override
    def on_stop(self) -> None:
        if self._owed is not None:
            self.attempt("the end", partial(self._keep_standing, self._owed))
        self._close()
        self._inbox.close()

    def _keep_standing(self, text: str) -> None:
        try:
            if self._attempt(lambda db: _keep_standing(db, text)):
                self._owed = None
        except BaseException:
            self._close()  # as in `mend`
            raise
        finally:
            self._plan()

    def _plan(self) -> None:
        """What is owed is tried again, though nothing else may come."""
        again = Seconds(time.monotonic() + _TRIED_AGAIN_AFTER)
        self._inbox.wake_at(None if self._owed is None else again)

    def _keep_activity(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        activity_table.keep(connection, rows)
        self._added += len(rows)
        if self._added >= _TRIMMED_AFTER:
            self._added = 0
            activity_table.trim(connection)

    def _attempt(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Do it, a second time with a new file where the old one turns out to be damaged. Whether it was done."""
        try:
            try:
                work(self._opened())
            except sqlite3.Error as error:
                if not is_damaged(error):
                    raise
                self._close()
                set_aside(self._path, error)
                work(self._opened())
        except (sqlite3.Error, OSError) as error:
            self._close()
            self._complain(error)
            return False
        self._is_in_trouble = False
        return True

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_state(self._path)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _complain(self, error: sqlite3.Error | OSError) -> None:
        """Once for a trouble, however long it lasts."""
        if not self._is_in_trouble:
            self._is_in_trouble = True
            _log.warning(
                "state.not_kept",
                file=str(self._path),
                because=str(error),
                hint="what is measured is forgotten with this process until this is mended",
            )


def _keep_standing(connection: sqlite3.Connection, text: str) -> None:
    connection.execute("INSERT OR REPLACE INTO standing VALUES (1, ?)", (text,))


def _standing(connection: sqlite3.Connection) -> list[str]:
    return [str(told) for [told] in connection.execute("SELECT told FROM standing")]


def _pass_on(found: list[FootprintMeasured], tell: Callable[[FootprintMeasured], None]) -> None:
    with contextlib.suppress(pykka.ActorDeadError):  # who wants to know has ended
        for event in found:
            tell(event)


def _known_of(
    connection: sqlite3.Connection, models: Iterable[ModelSpec]
) -> Iterable[FootprintMeasured]:
    for model in models:
        known = footprints.find(connection, footprints.key_of(model.argv))
        if known is not None:
            yield FootprintMeasured(
                model=model.id,
                argv=model.argv,
                peak=known.gpu,
                ram=known.ram,
                seen_by=known.seen_by,
            )


class StateOnDisk:
    """The store's thread, as the scheduler sees it: it is told, and waited for at the start alone."""

    def __init__(self) -> None:
        """Start the thread."""
        self._store = StateStore.start(places.state_db())

    def remember(self, measured: Remember) -> None:
        """Keep what a model was measured to take."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._store.tell(measured)

    def keep_standing(self, text: str) -> None:
        """Keep how things stand."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._store.tell(KeepStanding(text))

    def keep_activity(self, rows: Sequence[Row]) -> None:
        """Keep what became of requests. For any thread."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._store.tell(KeepActivity(rows))

    def recent_activity(self, most: int) -> list[Row]:
        """What became of the last requests, oldest first. Waits, but not for long. For any thread."""
        return self._asked(RecallActivity(most), [])

    def standing(self) -> str:
        """How things stood at the end of the former life; "" = nobody knows. Waits, but not for long."""
        return self._asked(RecallStanding(), "")

    def known_of(self, models: Iterable[ModelSpec]) -> list[FootprintMeasured]:
        """What former lives knew of these models. Waits, but not for long."""
        return self._asked(Recall(models=tuple(models)), [])

    def _asked(self, question: Recall | RecallStanding | RecallActivity, nothing: T) -> T:
        """The answer; `nothing` where it takes too long, or a bug of ours met it: nobody's start hangs on it."""
        asked = self._store.ask(question, block=False)
        try:
            answer = asked.get(timeout=_WAIT_AT_START)
        except pykka.Timeout:
            _log.warning("state.slow", file=str(places.state_db()), waited_s=_WAIT_AT_START)
            return nothing
        except pykka.ActorDeadError:  # the process is ending
            return nothing
        return nothing if answer is None else cast("T", answer)

    def recall(
        self, models: Iterable[ModelSpec], tell: Callable[[FootprintMeasured], None]
    ) -> None:
        """Have told, as events and soon, what is known of these models."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._store.tell(Recall(models=tuple(models), tell=tell))
