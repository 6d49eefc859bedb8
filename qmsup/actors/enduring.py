"""An actor that goes on after a bug of ours: what it was told then is lost, and nothing else.

An exception that nobody thought of would end a pykka actor for good, and what it did would be missing, without a word,
until the process ends. So it is logged with what the actor was doing, counted for `status`, and the next message is
taken. The scheduler actor is none of these: half a decision must not be built on, so a fresh process takes over.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import pykka
from typing_extensions import override

from qmsup.actors import mishaps
from qmsup.actors.gateway import Gateway
from qmsup.errors import Code, Refusal
from qmsup.ids import AskId
from qmsup.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLost:
    """A client's question met a bug: it gets a refusal, and need not wait."""

    ask: AskId

    def tell(self, gateway: Gateway) -> None:
        """Refuse it."""
        because = "a bug of qmsup met this question: see the log of the scheduler"
        gateway.refuse(self.ask, Refusal(code=Code.INTERNAL_ERROR, message=because))


class Enduring(pykka.ThreadingActor):
    """What others override in an actor is `begin` and `take` here, and `mend` where a break may leave halves."""

    PART: ClassVar[str]
    """What it is called, in the log and in `status`."""

    def __init__(self) -> None:
        super().__init__()
        self._log_of_breaks = Log(
            self.PART
        )  # its own: one that breaks without end leaves others their lines

    @final
    @override
    def on_start(self) -> None:
        self.attempt("begin", self.begin)

    @final
    @override
    def on_receive(self, message: object) -> object:
        """What `take` says; None where it broke."""
        try:
            return self.take(message)
        except Exception as error:  # noqa: BLE001 - that is what this class is for
            self._broke(type(message).__name__, error)
            self.attempt("mend", lambda: self.mend(message))
            return None

    def begin(self) -> None:
        """Do what is to be done first, in the actor's thread."""

    @abstractmethod
    def take(self, message: object) -> object:
        """Do what a message says."""

    def mend(self, message: object) -> None:
        """Taking this message broke, and it is given up: leave nothing half done, and let nobody wait for it."""

    @final
    def attempt(self, doing: str, work: Callable[[], None]) -> None:
        """Do something that comes by no message, such as what a descriptor calls, as if it came by one."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - that is what this class is for
            self._broke(doing, error)

    def _broke(self, doing: str, error: Exception) -> None:
        times = mishaps.note(self.PART, doing, error)
        self._log_of_breaks.exception_again(
            "actor.broke", actor=self.PART, doing=doing, times=times
        )
