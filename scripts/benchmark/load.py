"""The load generator, a process of its own: `python -m scripts.benchmark.load PLAN`.

Raw non-blocking sockets on one epoll loop. It prints a line of JSON at each stage, so that the process
that started it can read the CPU clocks of what is measured at the very moments the counting begins and
ends: `asked`, `first` (bytes for everyone), `measuring`, `measured`, `result`.
"""

import contextlib
import errno
import json
import select
import socket
import sys
import time
from array import array

from scripts.benchmark.answer import Answer, stamps
from scripts.benchmark.figures import Spread, spread
from scripts.benchmark.plans import Plan, Result, plan_from_text, result_to_text

_READ = 65536  # more would have malloc map and unmap memory at each read
_PATIENCE_S = 30.0  # for all to have asked, or to have their first byte


class Client:
    """One connection and the answer it waits for."""

    __slots__ = ("answer", "asked_at", "done", "first", "sock")

    def __init__(self) -> None:
        self.sock: socket.socket | None = None
        self.answer = Answer()
        self.asked_at = 0
        self.first = False
        self.done = False


class Load:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        body = plan.body.encode()
        self._request = (
            f"POST {plan.path} HTTP/1.1\r\nHost: 127.0.0.1:{plan.port}\r\nUser-Agent: bench\r\n"
            f"Accept: */*\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        self._epoll = select.epoll()
        self._clients = [Client() for _ in range(plan.clients)]
        self._by_fd: dict[int, Client] = {}
        self._started = 0
        self._firsts = 0
        self._reset()

    def _reset(self) -> None:
        self._latencies = array("q")
        self._first_bytes = array("q")
        self._delays = array("q")
        self._events = self._errors = self._bad_status = self._reconnects = self._done = 0

    def run(self) -> Result:
        """Starts everyone, warms up, counts."""
        plan = self._plan
        began = time.monotonic()
        while self._started < plan.clients and time.monotonic() < began + _PATIENCE_S:
            due = min(plan.clients, int((time.monotonic() - began) * plan.ramp) + 1)
            while self._started < due:
                self._started += 1
                self._ask(self._clients[self._started - 1])
            self._turn(0.002)
        _tell("asked")
        if plan.in_first:
            while self._firsts < plan.clients and time.monotonic() < began + _PATIENCE_S:
                self._turn(0.05)
            _tell("first", clients=self._firsts)
        if plan.repeats:
            self._until(time.monotonic() + plan.warm_s)
            self._reset()
        _tell("measuring")
        cpu, began = time.process_time(), time.monotonic()
        self._until(began + plan.measure_s)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        _tell("measured")
        return self._result(seconds, cpu)

    def _until(self, end: float) -> None:
        while (left := end - time.monotonic()) > 0:
            if not self._plan.repeats and self._done + self._errors >= self._plan.clients:
                return
            self._turn(min(left, 0.05))

    def _turn(self, patience_s: float) -> None:
        for fd, flags in self._epoll.poll(patience_s, 256):
            client = self._by_fd.get(fd)
            if client is None:
                continue
            if flags & select.EPOLLOUT:
                self._epoll.modify(fd, select.EPOLLIN)
                self._send(client)
            else:
                self._receive(client)

    def _ask(self, client: Client) -> None:
        client.answer.restart()
        client.first = False
        client.asked_at = time.monotonic_ns()
        if client.sock is None:
            self._connect(client)
        self._send(client)

    def _connect(self, client: Client) -> None:
        sock = socket.socket()
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BlockingIOError):
            sock.connect(("127.0.0.1", self._plan.port))
        self._epoll.register(sock, select.EPOLLIN)
        self._by_fd[sock.fileno()] = client
        client.sock = sock

    def _send(self, client: Client) -> None:
        assert client.sock is not None
        try:
            sent = client.sock.send(self._request)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENOTCONN):  # still connecting
                self._epoll.modify(client.sock, select.EPOLLOUT)
            else:
                self._fail(client)
            return
        if sent < len(self._request):
            self._fail(client)

    def _receive(self, client: Client) -> None:
        assert client.sock is not None
        try:
            got = client.sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        answer = client.answer
        if not got:
            if answer.spans:
                self._finish(client)
            elif client.done:
                self._close(client)
            else:
                self._fail(client)
            return
        if not client.first:
            client.first = True
            self._firsts += 1
            self._first_bytes.append(time.monotonic_ns() - client.asked_at)
        before = answer.events
        ended = answer.feed(got)
        self._events += answer.events - before
        if self._plan.stamped:
            now = time.monotonic_ns()
            self._delays.extend([now - made for made in stamps(got)])
        if ended:
            self._finish(client)

    def _finish(self, client: Client) -> None:
        self._latencies.append(time.monotonic_ns() - client.asked_at)
        self._done += 1
        if client.answer.status != b"200":
            self._bad_status += 1
        if client.answer.closes or client.answer.spans:
            self._close(client)
            self._reconnects += 1
        if self._plan.repeats:
            self._ask(client)
        else:
            client.done = True

    def _fail(self, client: Client) -> None:
        """The connection broke before the answer's end. A closed loop goes on, a little later."""
        self._errors += 1
        self._close(client)
        if self._plan.repeats:
            time.sleep(0.001)
            client.answer.restart()
            client.asked_at = time.monotonic_ns()
            self._connect(client)
            self._epoll.modify(client.sock or -1, select.EPOLLOUT)
        else:
            client.done = True

    def _close(self, client: Client) -> None:
        if client.sock is not None:
            del self._by_fd[client.sock.fileno()]
            client.sock.close()
            client.sock = None

    def _result(self, seconds: float, cpu_s: float) -> Result:
        return Result(
            seconds=seconds,
            answers=self._done,
            events=self._events,
            errors=self._errors,
            bad_status=self._bad_status,
            reconnects=self._reconnects,
            latency_us=_in_us(self._latencies),
            first_byte_us=_in_us(self._first_bytes),
            delay_us=_in_us(self._delays),
            own_cpu_s=cpu_s,
        )


def _in_us(times_ns: "array[int]") -> Spread:
    return spread([time_ns / 1000 for time_ns in times_ns])


def _tell(stage: str, **fields: int) -> None:
    print(json.dumps({"stage": stage, **fields}), flush=True)


def main() -> None:
    """The plan is the one argument."""
    print(result_to_text(Load(plan_from_text(sys.argv[1])).run()), flush=True)


if __name__ == "__main__":
    main()
