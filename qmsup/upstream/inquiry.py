"""A short question by HTTP to another machine. Whatever that answers costs so much time and memory at most.

`requests` bounds the time between two bytes. The time of the whole is bounded by an alarm that ends the connection; who
sends us elsewhere has not answered, and nothing is unpacked. Waits, so it has a thread of its own.
"""

import contextlib
import socket
import ssl
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import requests
import urllib3
from requests.adapters import HTTPAdapter
from typing_extensions import override
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from qmsup.units import Seconds
from qmsup.upstream.trusting import Trusting, cause_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came. The body is empty where only the head was asked for."""

    status: int
    body: bytes


class NoAnswerError(Exception):
    """There is none that can be read; the text says why, without a subject.

    Attributes:
        is_distrust: TLS failed.
    """

    def __init__(self, because: str, *, is_distrust: bool = False) -> None:
        super().__init__(because)
        self.is_distrust = is_distrust


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquirer:
    """Asks one server.

    Attributes:
        where: `host:port`.
        tls: how it is spoken to safely; None = not at all.
        api_key: sent along; "" = none.
        within: for each whole answer.
    """

    where: str
    tls: ssl.SSLContext | None = None
    api_key: str = ""
    within: Seconds

    def status(self, path: str) -> int:
        """The status of a GET; no body is waited for.

        Raises:
            NoAnswerError: there is none.
        """
        return self._ask(path, None).status

    def get(self, path: str, most: int) -> Answer:
        """The whole answer to a GET.

        Args:
            path: and query.
            most: bytes of its body.

        Raises:
            NoAnswerError: there is none, or it is larger.
        """
        return self._ask(path, most)

    def _ask(self, path: str, most: int | None) -> Answer:
        with _Alarm(self.within) as alarm, requests.Session() as session:
            session.trust_env = False  # a proxy of the environment is not for these
            session.mount("http://", _watched(HTTPAdapter()))
            if self.tls is not None:
                session.mount("https://", _watched(Trusting(self.tls)))
            try:
                answer = self._answer(session, path, most)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                raise self._reason(path, error, alarm) from error
            if alarm.has_rung:  # a body without a length seems to have ended
                raise NoAnswerError(self._late(path))
        return answer

    def _answer(self, session: requests.Session, path: str, most: int | None) -> Answer:
        headers = {"Accept-Encoding": "identity", "Connection": "close"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        scheme = "http" if self.tls is None else "https"
        with session.get(
            f"{scheme}://{self.where}{path}",
            headers=headers,
            timeout=self.within,
            stream=True,
            allow_redirects=False,
        ) as response:
            if most is None:
                return Answer(status=response.status_code, body=b"")
            body = bytearray()
            while chunk := response.raw.read(most + 1 - len(body), decode_content=False):
                body += chunk
                if len(body) > most:
                    raise NoAnswerError(f"{path} answered with more than {most} bytes")
            return Answer(status=response.status_code, body=bytes(body))

    def _reason(self, path: str, error: Exception, alarm: "_Alarm") -> NoAnswerError:
        if alarm.has_rung or isinstance(error, requests.Timeout):
            return NoAnswerError(self._late(path))
        if isinstance(error, requests.exceptions.SSLError):
            return NoAnswerError(cause_of(error), is_distrust=True)
        if not alarm.has_connected:
            return NoAnswerError("it cannot be reached")
        return NoAnswerError(f"{path} cannot be read ({type(error).__name__})")

    def _late(self, path: str) -> str:
        return f"{path} did not answer within {self.within:g} s"


class _Alarm:
    """Ends the connections that were made in its time once that is up, whatever they are in."""

    def __init__(self, within: Seconds) -> None:
        self._timer = threading.Timer(within, self._ring)
        self._timer.daemon = True
        self._connections: list[socket.socket] = []
        self.has_rung = False

    def __enter__(self) -> Self:
        self._token = _alarm.set(self)
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._timer.join()  # it is done with the descriptors then
        _alarm.reset(self._token)
        for connection in self._connections:
            connection.close()

    @property
    def has_connected(self) -> bool:
        """Whether there was somebody."""
        return bool(self._connections)

    def watched(self, connection: socket.socket) -> socket.socket:
        """The same, with a descriptor of it kept here: TLS takes the other one."""
        self._connections.append(connection.dup())
        if self.has_rung:
            self._ring()
        return connection

    def _ring(self) -> None:
        self.has_rung = True
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


_alarm: ContextVar[_Alarm] = ContextVar("alarm")


class _Plain(HTTPConnection):
    @override
    def _new_conn(self) -> socket.socket:
        return _alarm.get().watched(super()._new_conn())


class _Safe(HTTPSConnection):
    @override
    def _new_conn(self) -> socket.socket:
        return _alarm.get().watched(super()._new_conn())


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain  # type: ignore[mutable-override]  # urllib3's own way


class _SafePool(HTTPSConnectionPool):
    ConnectionCls = _Safe  # type: ignore[mutable-override]  # the same


def _watched(adapter: HTTPAdapter) -> HTTPAdapter:
    """The same, with an alarm for its connections."""
    adapter.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SafePool}
    return adapter
