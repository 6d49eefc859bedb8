"""Where one request goes, where it was before, and whether it may go on to somewhere else.

The request is kept as long as it may have to be sent again, and no longer: its body may be large.
"""

from qmsup.ids import HostName
from qmsup.listener.link import Link
from qmsup.listener.relay.asks import ask_of, remote_of
from qmsup.listener.relay.heir import Heir, heir_of
from qmsup.listener.relay.order import RelayOrder, Remote, whole_head
from qmsup.listener.relay.sending import Sending
from qmsup.units import Seconds
from qmsup.wire.listening import Ask, Granted

_TRIES = 2
_ASKED_ANEW = 3
"""Times that a grant may turn out to be void before its request has begun."""


class Course:
    """See the module.

    Attributes:
        order: the request; None = it is not needed any more.
        remote: how the granted host is spoken to; None = as a child of ours.
        where: its address.
        heir: the scheduler process that may have to be waited for.
        counted: the tokens of its prompt as a host has counted them; None = they are estimated.
    """

    __slots__ = (
        "_asked_anew",
        "_host",
        "_sending",
        "_tried",
        "_tries",
        "counted",
        "heir",
        "order",
        "remote",
        "where",
    )

    def __init__(self, order: RelayOrder) -> None:
        """It has no grant."""
        self.order: RelayOrder | None = order
        self.remote: Remote | None = None
        self.where = ""
        self.heir: Heir | None = None
        self.counted: int | None = None
        self._host = ""
        self._tried: tuple[HostName, ...] = ()
        self._tries = 0
        self._asked_anew = 0
        self._sending: Sending | None = None

    def granted(self, grant: Granted, link: Link) -> None:
        """It may go to a host."""
        order = self.order
        self._host = grant.host
        self.remote = None if order is None else remote_of(order, grant.host)
        self.where = grant.upstream
        self.heir = heir_of(order, self.remote, link)
        self._tries = 0
        self._sending = None

    def begin(self, *, is_plain: bool = False) -> Sending | None:
        """Try the host: what is to be sent. None = the request has ended meanwhile.

        Args:
            is_plain: the answer must not be compressed.
        """
        if (order := self.order) is None:
            return None
        self._tries += 1
        head = whole_head(order, self.remote, self.where, is_plain=is_plain)
        sending = self._sending = Sending(head, order.body)
        return sending

    @property
    def door(self) -> str:
        """What to connect to: `host:port`, or the path of a Unix socket."""
        via = "" if self.order is None or self.remote is not None else self.order.via
        return via or self.where

    @property
    def told(self) -> str:
        """The host as clients are told of it, where it is not there: another machine by its name, too."""
        return self.where if self.remote is None else f"{self.remote.name} at {self.where}"

    @property
    def turn(self) -> int:
        """How often this host was tried before."""
        return self._tries - 1

    @property
    def may_try_again(self) -> bool:
        """Whether a host that refuses connections is worth another try."""
        return self._tries < _TRIES

    def begin_anew(self) -> None:
        """The host is another one now, at the same address."""
        self._tries = 0

    def sent(self) -> None:
        """The request is out. On a route it is kept until the answer begins: another host may have to do it."""
        if self.order is not None and self.order.way is None and not self.order.via:
            self.drop()

    def drop(self) -> None:
        """The request is not needed any more, nor the file that may hold its body."""
        if self.order is not None:
            if not isinstance(self.order.body, bytes):
                self.order.body.close()
            self.order = None

    def leads_on(self, *, is_unheard: bool) -> bool:
        """Whether another host of the route may do it, or the same model once more.

        Args:
            is_unheard: nobody was where the grant said; a grant may be old.
        """
        order = self.order
        if order is None:
            return False
        return order.way is not None or (is_unheard and order.peer is None and not self._tried)

    def ask_on(self, waited: Seconds) -> Ask:
        """The question for where else it may go; see `leads_on`.

        Args:
            waited: for the grant that it had.
        """
        assert self.order is not None, "what is asked for again is still there"
        self._tried += (HostName(self._host),)
        return ask_of(self.order, self._tried, counted=self.counted, waited=waited)

    def ask_anew(self, waited: Seconds) -> Ask | None:
        """The question once more, as if there had been no grant. None = it has begun, or that happens too often.

        Args:
            waited: since it was asked for first.
        """
        has_begun = self._sending is not None and self._sending.has_begun
        if self.order is None or has_begun or self._asked_anew >= _ASKED_ANEW:
            return None
        self._asked_anew += 1
        tried = self._tried if self.order.way else ()
        return ask_of(self.order, tried, counted=self.counted, waited=waited)

    def ask_counted(self, tokens: int, waited: Seconds) -> Ask | None:
        """The question with the tokens as a host has counted them. None = the request has ended.

        Args:
            tokens: of its prompt.
            waited: since it was asked for first.
        """
        self.counted = tokens
        if self.order is None:
            return None
        return ask_of(self.order, self._tried, counted=tokens, waited=waited)
