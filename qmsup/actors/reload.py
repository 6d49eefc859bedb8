"""A reload, from the wish to the answer. The file is read elsewhere; here its result is told to all concerned."""

from collections.abc import Callable

import pykka

from qmsup import log, places
from qmsup.actors.changes import Changes, changes
from qmsup.actors.config_reader import ConfigRead, ConfigReader, ConfigRefused, ReadFile
from qmsup.actors.gateway import Gateway
from qmsup.actors.life import Life
from qmsup.errors import Code, Refusal
from qmsup.ids import AskId
from qmsup.spec import Spec

_log = log.Log("config")


class Reload:
    """Of the scheduler actor, and for its thread alone."""

    def __init__(
        self,
        spec: Spec,
        life: Life,
        gateway: Gateway,
        report: Callable[[ConfigRead | ConfigRefused], None],
    ) -> None:
        """Nothing was reloaded yet.

        Args:
            spec: what the process was started with.
            life: it names the file.
            gateway: for the answers.
            report: takes what became of the file, in the reader's thread.
        """
        self._first = self._spec = spec
        self._path = life.config
        self._gateway = gateway
        self._report = report
        self._reader: pykka.ActorRef[ConfigReader] | None = None

    def begin(self, ask: AskId | None) -> None:
        """Have the file read. `ask` is whose answer depends on it; None = a signal's, so nobody's."""
        if self._reader is None or not self._reader.is_alive():
            self._reader = ConfigReader.start(
                path=self._path, folder=places.config_copies(), report=self._report
            )
        self._reader.tell(ReadFile(ask=ask))

    def refuse(self, refused: ConfigRefused) -> None:
        """The file cannot be used: everything stays as it was."""
        for problem in refused.problems:
            _log.error("config.refused", problem=problem)
        self._refuse(refused.ask, Code.CONFIG_INVALID, "\n".join(refused.problems))

    def refuse_at_end(self, ask: AskId | None) -> None:
        """The scheduler is ending: the file counts at the next start."""
        self._refuse(
            ask, Code.SHUTTING_DOWN, "the scheduler is ending; the next one reads the file"
        )

    def tell(self, read: ConfigRead) -> None:
        """The configuration is in force: log what it changes, and tell who asked."""
        old, self._spec = self._spec, read.spec
        if (old.log_level, old.log_format) != (read.spec.log_level, read.spec.log_format):
            log.set_up(level=read.spec.log_level, style=read.spec.log_format)
        made = changes(old, read.spec, first=self._first)
        version = read.copy.version
        _log.info("config.in_force", version=version, changes=made.text)
        for sentence in made.needs_restart:
            _log.warning("config.needs_restart", because=sentence)
        if read.ask is not None:
            self._gateway.reply(read.ask, _body(made, version))

    def _refuse(self, ask: AskId | None, code: Code, message: str) -> None:
        if ask is not None:
            self._gateway.refuse(ask, Refusal(code=code, message=message))


def _body(made: Changes, version: str) -> dict[str, object]:
    return {
        "version": version,
        "added": list(made.added),
        "removed": list(made.removed),
        "changed": list(made.changed),
        "settings": list(made.settings),
        "needs_restart": list(made.needs_restart),
        "text": made.text,
    }
