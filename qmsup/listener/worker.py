"""gunicorn's thread worker with a relay engine around it.

Ordinary requests stay exactly gunicorn's. Where the app returns a RelayOrder, the connection leaves the thread pool
for the engine, and comes back to the keep-alive list when its answer is through. The engine's epoll is the outer
loop; gunicorn's poller is one descriptor in it.

This leans on internals of gunicorn's gthread.py: its version is pinned, and `gunicorn_moved` names what is missing.
"""

import errno
import gc
import socket
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gunicorn.config import Config
from gunicorn.glogging import Logger
from gunicorn.http import Request
from gunicorn.http.errors import ParseException
from gunicorn.workers import gthread
from typing_extensions import override

from qmsup import log, places
from qmsup.errors import ConfigError
from qmsup.listener import log_pages, patience
from qmsup.listener.arrival import Arrival, Arriving, arrival_of
from qmsup.listener.awaited import await_body
from qmsup.listener.deployment import Deployment, deployment_from_environment
from qmsup.listener.descriptors import raise_limit
from qmsup.listener.gunicorn_parts import gunicorn_moved
from qmsup.listener.idle import Idle
from qmsup.listener.inline import READ, Relayed
from qmsup.listener.link import Link
from qmsup.listener.relay.engine import Engine, RelayOptions
from qmsup.listener.relay.watch import Order
from qmsup.listener.serving import Serving, first_serving, read_serving
from qmsup.listener.unreadable import refuse
from qmsup.log import Log
from qmsup.spec import Spec
from qmsup.transport import context
from qmsup.units import Seconds

_HTTP11 = (1, 1)
_ACCEPTS_AT_ONCE = 16
_SPELL = 0.25
"""Seconds that the loop turns before gunicorn's housekeeping has its turn: it is too dear for every event."""
_LONG_ONES = 64
"""Threads for requests that are long: those that are slow to come hold up nothing but others of their kind."""

_log = Log("worker")


class _HandedOver(Exception):  # noqa: N818 - no error: the way out of gunicorn's handling of a request
    def __init__(self, order: Order, options: RelayOptions) -> None:
        self.order = order
        self.options = options


class RelayWorker(gthread.ThreadWorker):
    """See the module. What it serves is the application's `deployment`, or what the environment names."""

    link: Link
    engine: Engine
    _deployment: Deployment
    _arriving: Arriving
    _idle: Idle
    _long_ones: ThreadPoolExecutor
    _serving: Serving
    _told: str = ""
    """The version of the configuration that the scheduler told of last."""

    @classmethod
    @override
    def check_config(cls, cfg: Config, log: Logger) -> None:
        """Refuse what a relayed connection cannot have.

        Raises:
            RuntimeError: gunicorn prints it and ends.
        """
        super().check_config(cfg, log)
        if missing := gunicorn_moved():
            raise RuntimeError(
                f"this gunicorn lacks {', '.join(missing)}: install the version that qmsup pins"
            )
        if cfg.is_ssl:
            raise RuntimeError(
                "end TLS in front of qmsup (nginx, caddy): its ports speak plain HTTP"
            )

    @override
    def init_process(self) -> None:
        deployment = self._deployment = _deployment_of(self.app)
        spec = deployment.spec
        raise_limit()
        for listener in self.sockets:
            patience.set_up(listener)
        self.link = Link(
            deployment.listener,
            endpoint=places.scheduler_endpoint(),
            grace=spec.scheduler_grace,
        )
        self.engine = Engine(self.link, RelayOptions())
        self._idle = Idle(
            self.engine,
            Seconds(float(self.cfg.keepalive)),
            on_ready=self._look,
            on_closed=self._forget,
        )
        self._arriving = Arriving()
        self._long_ones = ThreadPoolExecutor(_LONG_ONES)
        try:
            super().init_process()
        finally:
            self._long_ones.shutdown(wait=False, cancel_futures=True)
            self.engine.close()
            context.destroy()

    @override
    def load_wsgi(self) -> None:
        deployment = self._deployment
        self._serving = first_serving(deployment, self.link, self.cfg)
        self._follow(self._serving.spec, deployment.spec)
        self.link.on_configured = self._read_version
        self.wsgi = self._call_app  # type: ignore[assignment]  # the stubs want a mutable mapping

    @override
    def run(self) -> None:
        gc.freeze()  # what is here now stays: to walk over all of it would stop every stream for milliseconds
        self.engine.watch_last(self.poller.fileno(), self._on_gunicorn)
        super().run()

    @override
    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        if self.alive:
            self._turn_for_a_spell(1.0 if timeout is None else timeout)
        else:
            self._end_calmly(timeout)

    @override
    def is_parent_alive(self) -> bool:
        """Whether there is a gunicorn. A worker without one ends as one that is told to.

        Else it would keep its port, where nobody is taken in any more, from the next gunicorn until its streams end.
        """
        self.alive = self.alive and super().is_parent_alive()
        return self.alive

    def _turn_for_a_spell(self, timeout: float) -> None:
        engine = self.engine
        is_quiet = not engine.turn(timeout) and not engine.held
        if is_quiet:
            return  # it is awake for its tick, and would be woken once more for the housekeeping alone
        until = engine.now + _SPELL
        while self.alive and engine.now < until and self.nr_conns < self.worker_connections:
            engine.turn(until - engine.now)

    def _end_calmly(self, timeout: float | None) -> None:
        if not self._accepting:  # type: ignore[attr-defined]  # unknown to the stubs
            self._shut_port()
        self.engine.turn(_SPELL if timeout is None else min(timeout, _SPELL))

    def _shut_port(self) -> None:
        """Refuse new clients while old streams end; gunicorn would let them wait for an accept that never comes."""
        for listener in self.sockets:
            listener.close()
        log_pages.ENDING.set()
        self.engine.dismiss()

    def _on_gunicorn(self, _event: int) -> None:
        super().wait_for_and_dispatch_events(0)

    # ---- the configuration

    def _read_version(self, version: str, path: Path) -> None:
        """The scheduler tells of another configuration: it is read in the pool, and put in force here."""
        self._told = version
        if not self.alive:
            return
        reading = self.tpool.submit(read_serving, path, self._deployment, self.link, self.cfg)
        reading.add_done_callback(
            lambda done: self.method_queue.defer(self._take_version, version, done)
        )

    def _take_version(self, version: str, reading: Future[Serving]) -> None:
        if version != self._told:
            return  # a newer one is being read
        try:
            serving = reading.result()
        except ConfigError as error:
            for problem in error.problems:
                _log.error("worker.keeps_configuration", version=version, because=problem)
            return
        except Exception:  # noqa: BLE001 - our bug; what serves now goes on
            _log.exception("worker.keeps_configuration", version=version)
            return
        former, self._serving = self._serving.spec, serving
        self._follow(serving.spec, former)
        self.engine.dismiss()  # who looks on comes again, and shows a key that is good now
        _log.info("worker.configured", version=version)

    def _follow(self, spec: Spec, former: Spec) -> None:
        """Have the rest of this process go by what is in force now."""
        self.link.grace = spec.scheduler_grace
        self.cfg.set("accesslog", "-" if spec.access_log else None)
        if (former.log_level, former.log_format) != (spec.log_level, spec.log_format):
            log.set_up(level=spec.log_level, style=spec.log_format)

    # ---- in a pool thread

    def _call_app(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        serving = self._serving  # one for all of this request, whatever comes meanwhile
        answer = serving.app(environ, start_response)
        if isinstance(answer, Order):
            raise _HandedOver(answer, serving.options)
        return answer

    @override
    def handle_request(self, req: Request, conn: gthread.TConn) -> bool | Relayed:  # type: ignore[override]  # see finish_request
        await_body(req, conn.sock)
        try:
            return super().handle_request(req, conn)
        except _HandedOver as handed:
            return Relayed(
                handed.order,
                is_http11=(req.version or _HTTP11) >= _HTTP11,
                keeps_alive=not req.should_close(),
                options=handed.options,
            )
        except (
            OSError
        ) as error:  # gunicorn knows some of them, and has a stack trace for the others
            raise BrokenPipeError(errno.EPIPE, "the client reads nothing") from error

    @override
    def handle_error(
        self, req: Request | None, client: socket.socket, addr: Any, exc: BaseException
    ) -> None:
        refuse(client, exc, req, addr)

    @override
    def _keepalive_after(self, conn: gthread.TConn, keepalive: bool | Relayed) -> bool | Relayed:  # type: ignore[misc]  # unknown to the stubs
        if not isinstance(keepalive, Relayed):
            return keepalive and self._is_through(conn)
        if keepalive.keeps_alive and not self._is_through(conn):
            return replace(keepalive, keeps_alive=False)
        return keepalive

    def _is_through(self, conn: gthread.TConn) -> bool:
        """Read what is left of a request's body; False if it is not clear where the next request would begin."""
        try:
            is_through = super()._keepalive_after(conn, keepalive=True)  # type: ignore[misc]  # unknown to the stubs
        except (
            ParseException,
            OSError,
        ):  # the request was answered: this is no matter for another answer
            return False
        return is_through and not conn.parser.unreader.has_given_up  # type: ignore[union-attr]  # plain HTTP/1.1

    # ---- in the loop

    @override
    def accept(self, listener: socket.socket) -> None:
        """Take new clients; none of them occupies a thread before its request is here."""
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                client, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                # No descriptor is free, as a rule. gunicorn looks again after a spell whether to accept.
                _log.warning("worker.cannot_accept", because=error.strerror)
                self.set_accept_enabled(False)
                return
            self.nr_conns += 1
            self._look(gthread.TConn(self.cfg, client, address, listener.getsockname()))

    def _look(self, conn: gthread.TConn) -> None:
        """Something may have come: see what it makes of the request."""
        try:
            data = conn.sock.recv(READ)
        except BlockingIOError:
            self._idle.add(conn)
            return
        except OSError:
            data = b""
        so_far = self._arriving.so_far(conn)
        if data:
            self._judge(conn, so_far + data)
        elif so_far:
            # It will come no further, but may be worth an answer.
            self._to_pool(conn, so_far, self.tpool)
        else:
            self._drop(conn)

    def _judge(self, conn: gthread.TConn, data: bytes) -> None:
        try:
            self._decide(conn, data)
        except Exception:  # noqa: BLE001 - one client's misfortune must not end all the others
            _log.exception("worker.broken")
            self._drop(conn)

    def _decide(self, conn: gthread.TConn, data: bytes) -> None:
        """Deal with a whole small request here if it is to be relayed, give others to a thread once they are here."""
        arrival = arrival_of(data)
        if arrival is Arrival.PARTIAL:
            if self._arriving.keep(conn, data, self.engine.now):
                self._idle.add(conn, has_begun=True)
            else:
                self._drop(conn)
            return
        inline = self._serving.inline
        relayed = None if inline is None else inline.order_for(data, conn)
        if relayed is None:
            pool = self._long_ones if arrival is Arrival.LONG else self.tpool
            self._to_pool(conn, data, pool)
        else:
            self._arriving.forget(conn)
            self.nr += 1
            self._hold(conn, relayed)

    def _to_pool(self, conn: gthread.TConn, data: bytes, pool: ThreadPoolExecutor) -> None:
        self._arriving.forget(conn)
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = patience.ImpatientUnreader(conn.sock)  # type: ignore[union-attr]  # it speaks HTTP/1.1
        conn.parser.unreader.unread(data)  # type: ignore[union-attr]  # the same
        conn.parser.unreader.begin()  # type: ignore[union-attr]  # the same
        conn.data_ready = True
        self.engine.release(conn.sock.fileno())
        handled = pool.submit(self.handle, conn)
        handled.add_done_callback(partial(self.method_queue.defer, self.finish_request, conn))

    def _drop(self, conn: gthread.TConn) -> None:
        self._arriving.forget(conn)
        self.engine.discard(conn.sock.fileno(), conn.sock)
        self._forget()

    @override
    def finish_request(self, conn: gthread.TConn, fs: Future[bool | Relayed]) -> None:  # type: ignore[override]  # see Relayed
        result = False if fs.cancelled() or fs.exception() is not None else fs.result()
        try:
            self._go_on(conn, result)
        except Exception:  # noqa: BLE001 - the same
            _log.exception("worker.broken")
            self._drop(conn)

    def _go_on(self, conn: gthread.TConn, result: bool | Relayed) -> None:  # noqa: FBT001 - gunicorn's
        if isinstance(result, Relayed):
            conn.sock.setblocking(False)  # noqa: FBT003 - the socket's own signature
            conn.parser.mesg = None  # type: ignore[union-attr]  # the parsed request, of no more use
            self._hold(conn, result)
        elif result:
            conn.sock.setblocking(False)  # noqa: FBT003 - the same
            self._take_back(conn, lives=True)
        else:
            self.engine.linger(conn.sock, self._forget)

    def _hold(self, conn: gthread.TConn, relayed: Relayed) -> None:
        self.engine.hold(
            conn.sock,
            relayed.order,
            is_http11=relayed.is_http11,
            keeps_alive=relayed.keeps_alive and self.alive and self.cfg.keepalive > 0,
            give_back=partial(self._take_back, conn),
            options=relayed.options or self._serving.options,
        )

    def _take_back(self, conn: gthread.TConn, lives: bool) -> None:  # noqa: FBT001 - called by the engine
        if not lives:
            self._forget()
        elif conn.parser is not None and (more := conn.parser.unreader.take_buffered()):  # type: ignore[union-attr]  # plain HTTP/1.1
            self._judge(conn, more)  # its next request came along with this one
        else:
            self._idle.add(conn)

    def _forget(self) -> None:
        self.nr_conns -= 1

    @override
    def murder_keepalived(self, force: bool = False) -> None:
        self._idle.close_expired(everyone=force)

    @override
    def _cap_keepalive(self, deadline: float) -> None:  # type: ignore[misc]  # unknown to the stubs
        self._idle.end_by(deadline)


def _deployment_of(application: object) -> Deployment:
    deployment = getattr(application, "deployment", None)
    return deployment if isinstance(deployment, Deployment) else deployment_from_environment()
