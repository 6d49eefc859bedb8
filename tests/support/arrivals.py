"""Requests that keep arriving while something is done to a box, and what became of each."""

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from tests.support.box import Box, until

_PATIENCE = 40.0
_PAUSE = 0.02


@dataclass
class Arrivals:
    """On each port a client that streams, one that wants its answer in one piece, and one that keeps its connection.

    Attributes:
        served: answers that came whole, by port.
        failed: a line for each that did not.
    """

    box: Box
    model: str
    ports: tuple[str, ...]
    words: int = 5
    served: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def __enter__(self) -> "Arrivals":
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep_asking, args=(port, streams, keeps))
            for port in self.ports
            for streams, keeps in ((True, False), (False, False), (True, True))
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: object, _trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def more(self, count: int = 10) -> None:
        """Wait until so many more were served on each port."""
        before = dict(self.served)

        def look() -> bool:
            return all(
                self.served.get(port, 0) >= before.get(port, 0) + count for port in self.ports
            )

        until(look, within=60.0, what=f"{count} more answers on each of {self.ports}")

    def _keep_asking(self, port: str, streams: bool, keeps: bool) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._is_over.is_set():
            is_used = connection is not None
            connection = connection or self._connect(port)
            began = time.monotonic()
            try:
                trouble = self._ask(connection, streams=streams, keeps=keeps)
            except http.client.RemoteDisconnected as error:
                # Who keeps a connection has to bear that it is closed between two requests.
                trouble = "" if is_used else repr(error)
            except (OSError, http.client.HTTPException) as error:
                trouble = "" if is_used and isinstance(error, BrokenPipeError) else repr(error)
            else:
                self.served[port] = self.served.get(port, 0) + (not trouble)
                if keeps and not trouble:
                    time.sleep(_PAUSE)
                    continue
            connection.close()
            connection = None
            if trouble:
                took = time.monotonic() - began
                self.failed.append(f"{port}, stream={streams}, after {took:.2f} s: {trouble}")
            time.sleep(_PAUSE)
        if connection is not None:
            connection.close()

    def _connect(self, port: str) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.box.ports[port], timeout=_PATIENCE)

    def _ask(self, connection: http.client.HTTPConnection, *, streams: bool, keeps: bool) -> str:
        body = {"model": self.model, "stream": streams, "max_tokens": self.words, "messages": []}
        headers = {"Content-Type": "application/json"}
        headers |= {} if keeps else {"Connection": "close"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        words = [f"{self.model}{number} " for number in range(self.words)]
        is_whole = all(word in text for word in words) and (not streams or "[DONE]" in text)
        return "" if answer.status == http.client.OK and is_whole else f"{answer.status} {text}"
