"""Control clients whose questions have no answer yet, and answers kept for those who ask again. Both are bounded."""

from collections import Counter, OrderedDict
from dataclasses import dataclass

from qmsup.ids import AskId

MOST = 4096
"""Questions without an answer, of all clients. Each is worked on: a `load` waits in the line."""

MOST_OF_ONE = 1024
"""Of one client, so that one that floods leaves room for others. A listener's worker asks for all its clients."""

_KEPT = 256
_KEPT_BYTES = 8 * 1024 * 1024
"""A client repeats within seconds. A `subscribe` of a large box may be a megabyte."""


@dataclass(slots=True)
class Asker:
    """Who waits for an answer."""

    client: bytes
    question_id: str
    is_heard: bool = True
    """It asked, or asked again, since the last look."""


class Askers:
    """Those who wait."""

    def __init__(self) -> None:
        self._known: dict[AskId, Asker] = {}
        self._of_client: Counter[bytes] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def hear_again(self, ask: AskId) -> bool:
        """Whether the question is known; its client is there."""
        known = self._known.get(ask)
        if known is not None:
            known.is_heard = True
        return known is not None

    def add(self, ask: AskId, client: bytes, question_id: str) -> str:
        """Note a new question; why there is no room for it, "" = there is."""
        if self._of_client[client] >= MOST_OF_ONE:
            return (
                f"{MOST_OF_ONE} questions of this client wait for an answer already: wait for one"
            )
        if len(self._known) >= MOST:
            return f"{MOST} questions wait for an answer already: ask again later"
        self._known[ask] = Asker(client, question_id)
        self._of_client[client] += 1
        return ""

    def pop(self, ask: AskId) -> Asker | None:
        """Who asked, and waits no more; None = nobody does."""
        asker = self._known.pop(ask, None)
        if asker is not None:
            self._of_client[asker.client] -= 1
            if not self._of_client[asker.client]:
                del self._of_client[asker.client]
        return asker

    def vanished(self) -> list[AskId]:
        """The questions that nobody has repeated since the last call; they are forgotten."""
        gone = [ask for ask, asker in self._known.items() if not asker.is_heard]
        for ask in gone:
            self.pop(ask)
        for asker in self._known.values():
            asker.is_heard = False
        return gone


class Replies:
    """The last answers."""

    def __init__(self) -> None:
        self._kept: OrderedDict[AskId, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, ask: AskId) -> bytes | None:
        """The answer that was given; None = none that is known still."""
        return self._kept.get(ask)

    def keep(self, ask: AskId, frame: bytes) -> None:
        """Remember an answer, at the cost of older ones."""
        self._kept[ask] = frame
        self._bytes += len(frame)
        while len(self._kept) > _KEPT or (self._bytes > _KEPT_BYTES and len(self._kept) > 1):
            _, old = self._kept.popitem(last=False)
            self._bytes -= len(old)
