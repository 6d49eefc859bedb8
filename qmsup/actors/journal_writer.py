"""Writes the journal to disk in a thread of its own: a disk that is full or slow is no matter of the scheduler's."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import pykka
from typing_extensions import override

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


class JournalWriter(pykka.ThreadingActor):
    """Tell it lines to write, or a function to call once what was told before has been written."""

    def __init__(self, folder: JournalFolder, progress: Progress) -> None:
        super().__init__()
        self._folder = folder
        self._progress = progress

    @override
    def on_receive(self, message: bytes | Callable[[], None]) -> None:
        if not isinstance(message, bytes):
            with contextlib.suppress(pykka.ActorDeadError):  # who wants to know has ended
                message()
            return
        try:
            self._folder.append(message)
        except OSError as error:
            self._complain(error)
        else:
            if self._progress.is_in_trouble:
                self._progress.is_in_trouble = False
                _log.info("journal.written_again")
        self._progress.dealt_with += len(message)

    @override
    def on_stop(self) -> None:
        self._folder.close()

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
