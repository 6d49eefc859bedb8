"""Writes the journal to disk in a thread of its own: a disk that is full or slow is no matter of the scheduler's."""

import contextlib
from dataclasses import dataclass

import pykka
from typing_extensions import override

from qmsup.actors.enduring import Enduring
from qmsup.actors.journal_folder import JournalFolder
from qmsup.log import Log

_log = Log("journal")


@dataclass(slots=True)
class Progress:
    """How far the writing is, in bytes. Each value is changed by one thread alone.

    Attributes:
        handed: by the scheduler, to the writer.
        dealt_with: written, or given up.
        is_in_trouble: the last of it could not be written.
    """

    handed: int = 0
    dealt_with: int = 0
    is_in_trouble: bool = False


class JournalWriter(Enduring):
    """Tell it lines to write, or a function to call once what was told before has been written."""

    PART = "journal"

    def __init__(self, folder: JournalFolder, progress: Progress) -> None:
        super().__init__()
        self._folder = folder
        self._progress = progress

    @override
    def take(self, message: object) -> None:
        if isinstance(message, bytes):
            self._write(message)
            return
        assert callable(message), "told by JournalOnDisk"
        with contextlib.suppress(pykka.ActorDeadError):  # who wants to know has ended
            message()

    @override
    def mend(self, message: object) -> None:
        if isinstance(message, bytes):
            self._progress.is_in_trouble = True  # they are on no disk

    @override
    def on_stop(self) -> None:
        self._folder.close()

    def _write(self, lines: bytes) -> None:
        try:
            self._folder.append(lines)
        except OSError as error:
            self._complain(error)
        else:
            if self._progress.is_in_trouble:
                self._progress.is_in_trouble = False
                _log.info("journal.written_again")
        finally:
            self._progress.dealt_with += len(lines)

    def _complain(self, error: OSError) -> None:
        """Once for a trouble, however long it lasts."""
        if not self._progress.is_in_trouble:
            self._progress.is_in_trouble = True
            _log.warning(
                "journal.not_written",
                because=error.strerror or str(error),
                file=error.filename,
                hint="decisions are kept in memory only until this is mended",
            )
