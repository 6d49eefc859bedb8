"""A thread that reads the memory, so that a driver that hangs makes nobody else hang.

It is a daemon: a read that never returns does not keep the process from ending. There is one at most, however long it
takes, and it is asked for one sample at a time.
"""

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol

from qmsup.core.vram.sample import Sample
from qmsup.log import Log

_log = Log("telemetry")


class SampleReader(Protocol):
    """What reads. Everything is called in the sampler's thread."""

    def read(self, pids: Collection[int] | None = None) -> Sample:
        """Look at everything now; `pids` are the processes of interest."""
        ...

    def close(self) -> None:
        """Let go of whatever was opened."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A sample that was asked for.

    Attributes:
        sample: None = it could not be taken.
        trouble: why not, in a sentence.
    """

    sample: Sample | None
    trouble: str = ""


class Sampler:
    """Its thread starts with the first sample that is asked for."""

    def __init__(
        self, open_reader: Callable[[], SampleReader], report: Callable[[Sampled], None]
    ) -> None:
        """Open nothing yet.

        Args:
            open_reader: called in the thread.
            report: takes what became of each ask, in the thread.
        """
        self._open = open_reader
        self._report = report
        self._asked: SimpleQueue[Collection[int] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, pids: Collection[int]) -> None:
        """Have a sample taken. One at a time: ask again only once it was reported."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
            self._thread.start()
        self._asked.put(pids)

    def close(self) -> None:
        """Have the thread end when it is done with what it does. Does not wait."""
        self._asked.put(None)

    def _run(self) -> None:
        reader: SampleReader | None = None
        failing = ""
        while (pids := self._asked.get()) is not None:
            try:
                reader = self._open() if reader is None else reader
                sampled = Sampled(sample=reader.read(pids))
                failing = ""
            except Exception as error:  # noqa: BLE001 - of a driver's binding; nothing of it may end the box
                trouble = f"the memory cannot be read: {error!r}"
                sampled = Sampled(sample=None, trouble=trouble)
                if trouble != failing:
                    _log.exception("telemetry.failed")
                failing = trouble
            self._report(sampled)
        if reader is not None:
            reader.close()
