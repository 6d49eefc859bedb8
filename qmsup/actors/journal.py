"""The journal: the scheduler's last turns, in memory for `explain` and on disk for whoever wants to replay them.

A turn becomes its line when it happens, which takes about two microseconds. Twice a second what has gathered is handed
to the writer's thread. Lines are plain bytes: thousands of them cost the garbage collector nothing, and the few that
name a request are found by its name.
"""

import contextlib
import json
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pykka

from qmsup.actors.journal_folder import JournalFolder, lines_in
from qmsup.actors.journal_lines import Header, LineWriter, is_header, read
from qmsup.actors.journal_writer import JournalWriter, Progress
from qmsup.core.scheduling.stories import Turn
from qmsup.log import Log
from qmsup.places import journal_dir
from qmsup.units import Seconds

_REMEMBERED = 16_384
"""Lines in memory: a few hundred bytes each."""
_MOST_BYTES = 64 * 1024 * 1024
"""Of them all: a greeting of thousands of requests is one line, and may come again and again."""
_PAUSE = Seconds(0.5)
_MOST_TOGETHER = 1024
"""Lines that may gather: a quarter of a megabyte, put together in a tenth of a millisecond."""
_MOST_BEHIND = 8 * 1024 * 1024
"""Bytes that may wait for a slow disk; what comes then is kept in memory only."""

_NOTHING = b"[]"
"""Stands for a turn that could not be told, so that its life is known not to be whole."""

_log = Log("journal")


@dataclass(frozen=True, slots=True)
class Dated:
    """A turn of this life or a former one.

    Attributes:
        life: what the life began with.
    """

    life: Header
    turn: Turn

    @property
    def time(self) -> float:
        """When it was, in Unix seconds."""
        return self.life.started + self.turn.now - self.life.clock


class Journal:
    """For the scheduler actor's thread alone."""

    def __init__(
        self,
        header: Header,
        *,
        write: Callable[[bytes], None],
        former: Iterable[bytes] = (),
        most: int = _REMEMBERED,
    ) -> None:
        """A life begins.

        Args:
            header: what it begins with.
            write: takes lines for the disk.
            former: lines of former lives, oldest first.
            most: how many lines are kept in memory.
        """
        self._lines: deque[bytes] = deque(former, maxlen=most)
        self._bytes = sum(map(len, self._lines))
        self._oldest: Header | None = None
        """The life that the first line is of, unless that is a header; None = nobody knows."""
        self._write = write
        self._encode = LineWriter(os.urandom(16))
        self._unwritten: list[bytes] = []
        self._due: Seconds | None = None
        self._begin(header)

    def note(self, turn: Turn) -> None:
        """Take a turn in.

        It becomes its line at once: as objects, the garbage collector would walk over it while it waits, again and
        again, and that costs more.
        """
        line = self._line_of(turn)
        self._keep(line)
        self._unwritten.append(line)
        if self._due is None:
            self._due = Seconds(turn.now + _PAUSE)
        if len(self._unwritten) >= _MOST_TOGETHER:
            self.flush()

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next; None while there is nothing to do."""
        return self._due

    def work(self, now: Seconds) -> None:
        """Hand what has gathered to the writer, if it is time for that."""
        if self._due is not None and now >= self._due:
            self.flush()

    def flush(self) -> None:
        """Hand all that has gathered to the writer."""
        if self._unwritten:
            self._write(b"\n".join((*self._unwritten, b"")))
            self._unwritten.clear()
        self._due = None

    def naming(self, name: str, *, saying: bytes = b"") -> Iterator[Dated]:
        """The turns that name something, newest first; each is read when it is asked for.

        Args:
            name: of a request or a model.
            saying: what else must be in the line.
        """
        wanted = json.dumps(name, ensure_ascii=False).encode()
        lines = tuple(self._lines)
        begins = [n for n, line in enumerate(lines) if is_header(line)]
        lives = [self._oldest, *(_life_of(lines[n]) for n in begins)]
        found = [n for n, line in enumerate(lines) if wanted in line and saying in line]
        for n in reversed(found):
            life = lives[bisect_right(begins, n)]
            turn = read(lines[n])
            if life is not None and isinstance(turn, Turn):
                yield Dated(life, turn)

    def begins(self) -> Dated | None:
        """The oldest turn that is known."""
        life = self._oldest
        for line in self._lines:
            match read(line):
                case Header() as header:
                    life = header
                case Turn() as turn if life is not None:
                    return Dated(life, turn)
                case _:
                    pass
        return None

    def _begin(self, header: Header) -> None:
        line = self._encode.header(header)
        self._keep(line)
        self._write(line + b"\n")

    def _line_of(self, turn: Turn) -> bytes:
        try:
            return self._encode.turn(turn)
        except (ValueError, TypeError):  # text that is no UTF-8, such as a strange file's name
            _log.exception("journal.unwritable_turn", number=turn.number)
            return _NOTHING

    def _keep(self, line: bytes) -> None:
        lines = self._lines
        self._bytes += len(line)
        while lines and (len(lines) == lines.maxlen or self._bytes > _MOST_BYTES):
            oldest = lines.popleft()
            self._bytes -= len(oldest)
            if is_header(oldest):
                self._oldest = _life_of(oldest)
        lines.append(line)


def _life_of(line: bytes) -> Header | None:
    header = read(line)
    return header if isinstance(header, Header) else None


class JournalOnDisk:
    """The writer's thread, as the scheduler sees it: it is told, and never waited for."""

    def __init__(self) -> None:
        """Start the thread. Nothing is written before it is told."""
        self._progress = Progress()
        self._is_behind = False
        self._writer = JournalWriter.start(JournalFolder(journal_dir()), self._progress)

    def write(self, lines: bytes) -> None:
        """Have lines written, unless the disk is hopelessly behind."""
        progress = self._progress
        is_behind = progress.handed - progress.dealt_with > _MOST_BEHIND
        if is_behind and not self._is_behind:
            _log.warning(
                "journal.behind", because="the disk is too slow", folder=str(journal_dir())
            )
        self._is_behind = is_behind
        if not is_behind:
            progress.handed += len(lines)
            self._tell(lines)

    def about(self) -> dict[str, object]:
        """Where it is, and whether it could be written."""
        return {"folder": str(journal_dir()), "is_written": not self._progress.is_in_trouble}

    def when_written(self, call: Callable[[], None]) -> None:
        """Call this, in the writer's thread, once all that was told before is on disk."""
        self._tell(call)

    def _tell(self, message: bytes | Callable[[], None]) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._writer.tell(message)


def former_lines() -> list[bytes]:
    """The newest lines of former lives; none where they cannot be read."""
    try:
        return [*deque(lines_in(journal_dir()), maxlen=_REMEMBERED)]
    except OSError as error:
        _log.warning("journal.unreadable", because=error.strerror, folder=str(journal_dir()))
        return []
