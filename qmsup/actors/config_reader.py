"""Reads and checks the configuration file in a thread of its own: the scheduler's waits for no disk and no parser."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pykka
from typing_extensions import override

from qmsup import config
from qmsup.actors import mishaps
from qmsup.actors.copies import Copy, keep_copy
from qmsup.errors import ConfigError
from qmsup.ids import AskId
from qmsup.log import Log
from qmsup.spec import Spec

_log = Log("config")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """Read the file; `ask` is whose answer depends on it, None = nobody's."""

    ask: AskId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRead:
    """The file is good, and its text is kept for the workers."""

    ask: AskId | None
    spec: Spec
    copy: Copy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRefused:
    """The file cannot be used: each problem is one line."""

    ask: AskId | None
    problems: tuple[str, ...]


class ConfigReader(pykka.ThreadingActor):
    """Takes ReadFile; each is answered by one ConfigRead or ConfigRefused."""

    def __init__(
        self, *, path: Path, folder: Path, report: Callable[[ConfigRead | ConfigRefused], None]
    ) -> None:
        """Nothing is read yet.

        Args:
            path: of the file.
            folder: for the copies.
            report: takes the answers, in this actor's thread.
        """
        super().__init__()
        self._path = path
        self._folder = folder
        self._report = report

    @override
    def on_receive(self, message: object) -> None:
        assert isinstance(message, ReadFile)
        self._report(self._read(message.ask))

    def _read(self, ask: AskId | None) -> ConfigRead | ConfigRefused:
        try:
            found = config.read_file(self._path)
            copy = keep_copy(found.text, self._folder)
        except ConfigError as error:
            return ConfigRefused(ask=ask, problems=error.problems)
        except OSError as error:
            problem = f"{self._folder}: cannot keep a copy of the file ({error.strerror})"
            return ConfigRefused(ask=ask, problems=(problem,))
        except Exception as error:  # noqa: BLE001 - the asker is to hear of our bug, and the next reload may do better
            mishaps.note("reload", "the configuration file", error)
            _log.exception("config.broken")
            return ConfigRefused(ask=ask, problems=(f"a bug of qmsup: {error!r}; see its log",))
        for remark in found.remarks:
            _log.warning("config.remark", text=remark)
        return ConfigRead(ask=ask, spec=found.spec, copy=copy)
