"""One relayed request, from the ask to the last byte of the answer: what each happening means for the client.

    ASKING ── place or loading ──▶ WAITING
       └───────── granted ──────────┴──▶ CONNECTING ── answer begins ──▶ HEAD ── head read ──▶ BODY ──▶ DONE
                                                                                     └─ 101 ──▶ TUNNEL ──▶ DONE
    refused, cut, upstream gone, client gone: DONE from wherever it is

No socket, no clock, no thread: bytes and happenings in, bytes for the client out. The engine reads `phase` after
each call and does the rest. CONNECTING covers the request on its way to the child as well.
"""

from qmsup.errors import Code, Refusal, status_of
from qmsup.listener.errors import error_response, sse_error
from qmsup.listener.outcome import Dialect, Outcome, Reading, reading_of
from qmsup.listener.placeholder import LOADING, Placeholder, waiting
from qmsup.listener.relay.delivery import LAST_CHUNK, Delivery, chunk, passing_on, put_behind
from qmsup.listener.relay.framing import SWITCHES, FramingError, Head, HeadLines
from qmsup.listener.relay.head_reader import HeadReader
from qmsup.listener.relay.heads import (
    client_head,
    interim_heads,
    our_headers,
    placeholder_head,
    switching_head,
)
from qmsup.listener.relay.order import RelayOrder
from qmsup.listener.relay.phases import Ending, Phase
from qmsup.spec import LOCAL
from qmsup.wire.listening import Granted


class Exchange:
    """The state of one relayed request.

    Attributes:
        phase: where it stands.
        ending: once DONE, what becomes of the client's connection.
        outcome: once DONE after a grant, the word for the scheduler.
        served: at least one byte of an answer came from the child.
        status: of the answer that the client got, 0 while there is none.
    """

    __slots__ = (
        "_delivery",
        "_dialect",
        "_granted",
        "_head_is_out",
        "_head_reader",
        "_host",
        "_is_delimited",
        "_is_http11",
        "_keeps_alive",
        "_method",
        "_model",
        "_origin",
        "_placeholder",
        "_reading",
        "_request",
        "ending",
        "outcome",
        "phase",
        "served",
        "status",
    )

    def __init__(
        self,
        order: RelayOrder,
        *,
        is_http11: bool,
        keeps_alive: bool,
        placeholder: Placeholder | None = None,
    ) -> None:
        """Begin in ASKING.

        Args:
            order: what the app decided.
            is_http11: the client knows chunks.
            keeps_alive: the client's connection may carry another request afterwards.
            placeholder: None when the client is told nothing while it waits.
        """
        self.phase = Phase.ASKING
        self.ending = Ending.KEEP
        self.outcome = ""
        self.served = False
        self.status = 0
        self._request = order.request
        self._model = order.model
        self._method = order.method
        self._dialect = order.dialect
        self._origin = order.origin
        self._head_reader = HeadReader(order.method, upgrades=order.upgrades and is_http11)
        self._is_http11 = is_http11
        self._keeps_alive = keeps_alive
        self._placeholder = placeholder
        self._head_is_out = False
        self._is_delimited = True
        self._reading: Reading | Outcome = Outcome.UNKNOWN
        self._granted: Granted | None = None
        self._host: str | None = "local" if order.way is None else None
        self._delivery: Delivery | None = None

    # ---- while it waits

    def placed(self, place: int, now: float, *, was_ready: bool | None = None) -> bytes:
        """The scheduler told its place in the line, 1 = next, and perhaps whether its model was ready at first."""
        loaded = None if was_ready is None else not was_ready
        return self._note(waiting(place), now, loaded=loaded)

    def loading(self, now: float) -> bytes:
        """The scheduler is loading its model."""
        return self._note(LOADING, now, loaded=True)

    def tick(self, now: float) -> bytes:
        """Time has passed: a comment, if the client has heard nothing for long."""
        if not self._head_is_out or self._placeholder is None or self.phase >= Phase.BODY:
            return b""
        comment = self._placeholder.keep_alive(now)
        return self._framed(comment) if comment else b""

    def granted(self, grant: Granted) -> None:
        """The scheduler offers a lease: the request may go to the child."""
        self._granted = grant
        self._host = grant.host
        self.phase = Phase.CONNECTING

    def returned(self) -> None:
        """The upstream gave no byte of an answer: the request waits for another one."""
        self._granted = None
        self.phase = Phase.WAITING

    def refused(self, refusal: Refusal) -> bytes:
        """There will be no answer of a child; the connection stays in good order."""
        return self._refuse(refusal)

    @property
    def grant(self) -> Granted | None:
        """The lease it has."""
        return self._granted

    @property
    def has_spoken(self) -> bool:
        """Its client has heard something while it waited: what follows can be nothing but an event stream."""
        return self._head_is_out

    # ---- while the child answers

    def receive(self, data: bytes) -> bytes:
        """Bytes of the upstream arrived; a framing that is broken ends the exchange as a lost child does."""
        self.served = True
        try:
            if self._delivery is None:
                return self._receive_head(data)
            said = self._delivery.feed(data)
        except FramingError as error:
            return self.upstream_lost(f"{error}")
        if self._delivery.is_complete:
            self._finish()
        return said

    def upstream_closed(self) -> bytes | None:
        """The upstream ended its connection: the end of the answer, or None = of the child (`upstream_lost`)."""
        said = None if self._delivery is None else self._delivery.close()
        if said is not None:
            self._finish()
        return said

    def upstream_lost(self, reason: str) -> bytes:
        """The upstream cannot be reached, or broke off; `reason` follows the words "the server of model X"."""
        refusal = Refusal(
            code=Code.UPSTREAM_FAILED, message=f"the server of model {self._model}: {reason}"
        )
        return self._break_off(refusal)

    def cut(self, refusal: Refusal) -> bytes:
        """The scheduler ends the relay: the lease is void."""
        return self._break_off(refusal)

    def client_left(self) -> None:
        """Nobody is there to read any more."""
        self.phase = Phase.DONE
        self.ending = Ending.CLOSE
        self.outcome = Outcome.ABANDONED

    def tunnel_ended(self, broken: str) -> bytes:
        """One of the two sides of a tunnel has nothing more to say; `broken` says how the upstream was lost, if so."""
        if broken:
            return self.upstream_lost(broken)
        self.phase = Phase.DONE
        self.ending = Ending.CLOSE
        self.outcome = Outcome.FINISHED
        return b""

    def tokens(self) -> tuple[int | None, int | None]:
        """Tokens of the prompt and of the answer, as far as the answer told them; None = it did not."""
        reading = self._reading
        return reading.tokens() if isinstance(reading, Reading) else (None, None)

    # ---- inside

    def _note(self, status: bytes, now: float, *, loaded: bool | None) -> bytes:
        if self.phase > Phase.WAITING:
            return b""
        self.phase = Phase.WAITING
        if self._placeholder is None or not (comment := self._placeholder.tell(status, now)):
            return b""
        if self._head_is_out:
            return self._framed(comment)
        self._head_is_out = True
        self.status = 200
        self._keeps_alive = self._keeps_alive and self._is_http11
        ours = our_headers(
            self._request,
            self._model,
            loaded=loaded,
            wait_ms=None,
            host=self._host,
        )
        head = placeholder_head(
            ours,
            origin=self._origin,
            chunked=self._is_http11,
            keeps_alive=self._keeps_alive,
        )
        return head + self._framed(comment)

    def _framed(self, event: bytes) -> bytes:
        return chunk(event) if self._is_http11 else event

    def _receive_head(self, data: bytes) -> bytes:
        self.phase = Phase.HEAD
        interim, head, rest = self._head_reader.feed(data)
        said = self._pass_interim(interim) if interim else b""
        return said if head is None else said + self._take(head, rest)

    def _pass_interim(self, heads: list[HeadLines]) -> bytes:
        return interim_heads(heads) if self._is_http11 and not self._head_is_out else b""

    def _take(self, head: Head, rest: bytes) -> bytes:
        if head.lines.status == SWITCHES:
            self.phase = Phase.TUNNEL
            self.status = SWITCHES
            return switching_head(head, self._our_headers()) + rest
        self._reading = reading_of(
            self._dialect,
            status=head.lines.status,
            is_event_stream=head.lines.is_event_stream,
            is_encoded=head.lines.is_encoded,
            is_json=head.lines.is_json,
        )
        if self._head_is_out:
            self.phase = Phase.BODY
            return self._continue_placeholder(head, rest)
        return self._begin(head, rest)

    def _begin(self, head: Head, rest: bytes) -> bytes:
        reading = self._reading if isinstance(self._reading, Reading) else None
        delivery, passes = passing_on(head, is_http11=self._is_http11, reading=reading)
        # What is broken from its start on can still be refused with a status of ours.
        body = delivery.feed(rest) if rest else b""
        self.phase = Phase.BODY
        self.status = head.lines.status
        self._is_delimited = passes and head.framing.is_delimited
        self._keeps_alive = self._keeps_alive and self._is_delimited
        self._delivery = delivery
        said = client_head(
            head,
            self._our_headers(),
            origin=self._origin,
            chunked=passes,
            keeps_alive=self._keeps_alive,
        )
        if delivery.is_complete:
            self._finish()
        return said + body

    def _our_headers(self) -> bytes:
        grant = self._granted
        return our_headers(
            self._request,
            self._model,
            loaded=None if grant is None or grant.host != LOCAL else not grant.was_ready,
            wait_ms=None if grant is None else grant.waited_ms,
            host=self._host,
        )

    def _continue_placeholder(self, head: Head, rest: bytes) -> bytes:
        delivery = put_behind(
            head,
            chunked=self._is_http11,
            reading=self._reading if isinstance(self._reading, Reading) else None,
            names_errors=self._dialect is Dialect.MESSAGES,
        )
        self._delivery = delivery
        said = delivery.feed(rest) if rest else delivery.ending()
        if delivery.is_complete:
            self._finish()
        return said

    def _finish(self) -> None:
        self.phase = Phase.DONE
        self.ending = Ending.KEEP if self._keeps_alive else Ending.CLOSE
        reading = self._reading
        self.outcome = reading.outcome() if isinstance(reading, Reading) else reading

    def _refuse(self, refusal: Refusal) -> bytes:
        self.phase = Phase.DONE
        self.outcome = Outcome.FAILED
        self.ending = Ending.KEEP if self._keeps_alive else Ending.CLOSE
        if self._head_is_out:
            end = LAST_CHUNK if self._is_http11 else b""
            return self._framed(self._error_event(refusal)) + end
        self.status = status_of(refusal.code)
        return error_response(
            refusal,
            origin=self._origin,
            request_id=None,
            close=not self._keeps_alive,
            head_only=self._method == "HEAD",
            about=self._our_headers(),
        )

    def _error_event(self, refusal: Refusal) -> bytes:
        return sse_error(refusal, named=self._dialect is Dialect.MESSAGES)

    def _break_off(self, refusal: Refusal) -> bytes:
        if self.phase < Phase.BODY and not self._head_is_out:
            return self._refuse(refusal)
        self.phase = Phase.DONE
        self.outcome = Outcome.FAILED
        self.ending = Ending.CLOSE
        if self.status == SWITCHES:
            self.ending = Ending.RESET
            return b""
        if self._delivery is None:
            return self._framed(self._error_event(refusal))
        said = self._delivery.break_off(self._error_event(refusal))
        if not said and not self._is_delimited:
            self.ending = Ending.RESET
        return said
