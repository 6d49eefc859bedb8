"""What is done about a control question: read, wished of the core, or handed to whose matter it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from qmsup.actors import answers, explaining, wishes
from qmsup.actors.books import Books
from qmsup.actors.chronicle import Chronicle, Written
from qmsup.actors.gateway import Asked, Gateway
from qmsup.actors.gauges import gauges_of
from qmsup.actors.life import Life
from qmsup.actors.reload import Reload
from qmsup.actors.route_desk import RouteDesk
from qmsup.actors.watching import Watching
from qmsup.core.scheduling.events import Event, ShutdownAsked
from qmsup.core.scheduling.state import State
from qmsup.errors import Code, Refusal, RequestError
from qmsup.spec import OnExit, Spec
from qmsup.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """For the scheduler actor's thread alone.

    Attributes:
        life: of the process.
        state: the scheduler's, to be read.
        spec: tells the configuration in force.
        gateway: carries the answers.
        routes: answers what is asked about hosts and routes.
        reload: reads a new configuration.
        chronicle: the journal and the feed.
        books: metrics and activity.
        watching: what was read of the memory last.
        handle: gives the core an event.
        tell: puts a message into the scheduler's inbox, from any thread.
    """

    life: Life
    state: State
    spec: Callable[[], Spec]
    gateway: Gateway
    routes: RouteDesk
    reload: Reload
    chronicle: Chronicle
    books: Books
    watching: Watching
    handle: Callable[[Event], None]
    tell: Callable[[object], None]

    def answer(self, asked: Asked, now: Seconds) -> None:
        """Do what is asked; the answer goes out now, or once it is there."""
        try:
            self._answer(asked, now)
        except answers.BadQuestionError as error:
            self.gateway.refuse(asked.ask, Refusal(code=Code.BAD_REQUEST, message=str(error)))
        except RequestError as error:
            self.gateway.refuse(asked.ask, error.refusal)

    def _answer(self, asked: Asked, now: Seconds) -> None:
        if (body := self.routes.answer(asked)) is not None:
            self.gateway.reply(asked.ask, body)
            return
        wish = wishes.wish_of(asked, self.state, self.spec(), now)
        if wish is not None:
            self.gateway.expect(asked.ask, wish.body)
            self.handle(wish.event)
            return
        match asked.verb:
            case "reload":
                self.reload.begin(asked.ask)
            case "shutdown":
                self._shut_down(asked)
            case "subscribe":
                self.chronicle.show(self.state, self.spec(), now, asked.ask)
            case "metrics":
                up, seen = self.routes.up(now), self.watching.reading
                gauges = gauges_of(self.state, self.spec(), now, seen, up)
                self.books.show_metrics(asked.ask, gauges)
            case "activity":
                self.books.show_activity(asked.ask, asked.args)
            case "journal":
                self.chronicle.journal.flush()
                self.chronicle.on_disk.when_written(partial(self.tell, Written(ask=asked.ask)))
            case verb:
                self.gateway.reply(asked.ask, self._reading(verb, asked.args, now))

    def _shut_down(self, asked: Asked) -> None:
        """End the process as TERM does. Who names a life ends no later one by asking again."""
        named, epoch = asked.args.get("epoch"), self.life.epoch
        if named is not None and (isinstance(named, bool) or not isinstance(named, int)):
            raise answers.BadQuestionError('shutdown: "epoch" must be a number, as `status` tells')
        if named is not None and named != epoch:
            self.gateway.reply(asked.ask, {"text": f"that scheduler has ended: this is {epoch}"})
            return
        kept = "go on" if self.spec().on_exit is OnExit.KEEP else "are stopped"
        text = f"the scheduler ends, and its models {kept}; whoever supervises it may start another"
        self.gateway.reply(asked.ask, {"text": text})
        self.handle(ShutdownAsked())

    def _reading(self, verb: str, args: Mapping[str, object], now: Seconds) -> object:
        match verb:
            case "ping":
                return {}
            case "queue":
                return explaining.queue(self.state, now)
            case "explain":
                return explaining.explain(args, self.state, self.chronicle.journal, now)
            case _:
                seen = self.watching.shown(now)
                body = answers.reading(verb, self.state, self.spec(), self.life, now, seen)
                if body is None:
                    raise answers.BadQuestionError(
                        f"unknown verb {verb!r}: ask one of {wishes.EVERY_VERB}"
                    )
                return body
