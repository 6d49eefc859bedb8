"""What is kept and told of the scheduler's turns: the journal, the feed, and how things stand for the next life.

All of it waits for a quiet moment: a turn costs little when it happens. For the scheduler actor's thread alone.
"""

import contextlib
import time
from dataclasses import dataclass

import pykka

from qmsup.actors.feed import FeedActor
from qmsup.actors.journal import Journal, JournalOnDisk, former_lines
from qmsup.actors.journal_lines import Header
from qmsup.actors.onlooker import Onlooker
from qmsup.actors.sightings import Kept
from qmsup.actors.standing import StandingKeeper
from qmsup.actors.state_store import StateOnDisk
from qmsup.core.scheduling.effects import Record
from qmsup.core.scheduling.state import State
from qmsup.core.scheduling.stories import Turn
from qmsup.ids import AskId, Epoch
from qmsup.spec import Spec
from qmsup.units import Seconds

_NOT_TO_BE_LOST = ("job.", "model.pinned", "model.unpinned", "box.")
"""How decisions begin that somebody was promised beyond a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The journal is on disk as far as it went when this was asked for."""

    ask: AskId


def header_of(spec: Spec, epoch: Epoch, state: State) -> Header:
    """What a life begins with, now."""
    return Header(
        epoch=epoch,
        first_incarnation=state.first_incarnation,
        spec=spec,
        started=time.time(),
        clock=Seconds(time.monotonic()),
    )


class Chronicle:
    """See the module.

    Attributes:
        journal: of this life and former ones.
        on_disk: where the journal is written.
        onlooker: who wants to see what.
    """

    def __init__(
        self,
        header: Header,
        *,
        feed: pykka.ActorRef[FeedActor],
        store: StateOnDisk,
        offset: float,
        memory: Kept | None = None,
    ) -> None:
        """A life begins.

        Args:
            header: what it begins with.
            feed: is told what onlookers are to see.
            store: keeps how things stand.
            offset: what makes Unix seconds of the monotonic clock.
            memory: what was learnt of the GPU memory; None = nothing is.
        """
        self.on_disk = JournalOnDisk()
        self.journal = Journal(header, write=self.on_disk.write, former=former_lines())
        self.onlooker = Onlooker(offset)
        self._standing = StandingKeeper(store, offset, memory)
        self._feed = feed

    @property
    def due(self) -> Seconds | None:
        """When `work` is wanted next; None = nothing is to be done."""
        times = (self.journal.due, self.onlooker.due, self._standing.due)
        return min((at for at in times if at is not None), default=None)

    def note(self, turn: Turn) -> None:
        """Something happened, and this is what was decided."""
        now = turn.now
        self.journal.note(turn)
        for effect in turn.effects:
            if type(effect) is Record:
                self.onlooker.note(effect, now)
                if effect.decision.startswith(_NOT_TO_BE_LOST):
                    self._standing.hurry()
        self.onlooker.stir(now)
        self._standing.stir(now)

    def keep_promises(self, state: State) -> None:
        """Before each wait: what was promised does not wait for the clock, which stands still for who was frozen."""
        if self._standing.is_urgent:
            self._standing.keep(state)

    def work(self, state: State, spec: Spec, now: Seconds) -> None:
        """Do what is due."""
        self.journal.work(now)
        if self.onlooker.due is not None and now >= self.onlooker.due:
            self.show(state, spec, now)
        if self._standing.due is not None and now >= self._standing.due:
            self._standing.keep(state)

    def show(self, state: State, spec: Spec, now: Seconds, ask: AskId | None = None) -> None:
        """Let onlookers see the state; with an ask, whoever asked sees all of it."""
        with contextlib.suppress(pykka.ActorDeadError):  # the process is ending
            self._feed.tell(self.onlooker.look(state, spec, now, ask))

    def end(self, state: State) -> None:
        """Hand over all that has gathered, while those who write it still listen."""
        self.journal.flush()
        self._standing.keep(state, ends=True)
