"""How a grant reaches who asked: at once, or by a promise where the request goes by a lease that was lent.

A promise is kept when the turn ends and not before the caller is done with its request: the end of one gives its
connection back.
"""

from qmsup.errors import Code, Refusal
from qmsup.ids import RequestId
from qmsup.listener.asker import Asker
from qmsup.log import Log
from qmsup.wire.listening import Granted

_BROKEN = Refusal(
    code=Code.INTERNAL_ERROR, message="qmsup failed at this request; its log says why"
)

_log = Log("link")


class Promises:
    """Of one worker."""

    __slots__ = ("_promised",)

    def __init__(self) -> None:
        """Nothing is promised."""
        self._promised: dict[RequestId, tuple[Asker, Granted]] = {}

    def make(self, asker: Asker, grant: Granted) -> None:
        """It is going to be granted."""
        self._promised[grant.request] = (asker, grant)

    def drop(self, request: RequestId) -> Asker | None:
        """It is not granted after all. None = nothing was promised, or it was kept."""
        promise = self._promised.pop(request, None)
        return None if promise is None else promise[0]

    def keep(self) -> None:
        """Grant what was promised."""
        while self._promised:  # the end of one request may bring the next
            promised, self._promised = self._promised, {}
            for asker, granted in promised.values():
                try:
                    grant(asker, granted)
                except Exception:  # noqa: BLE001 - one request's misfortune must not end all the others
                    _log.exception("link.broken")


def grant(asker: Asker, granted: Granted) -> None:
    """Have a request begin, or end as one that broke: its lease would be in use for ever."""
    try:
        asker.on_granted(granted)
    except Exception:  # noqa: BLE001 - the same
        _log.exception("link.broken")
        asker.on_cut(_BROKEN)
