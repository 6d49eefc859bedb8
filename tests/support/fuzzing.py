"""Requests as no client should send them, made from a seed, and what a server may answer to them."""

import gzip
import json
import random
import socket
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from backports import zstd

_RESET = struct.pack("ii", 1, 0)
_ANSWERED_WITHIN = 30.0
_LOOKED_FOR = 0.12
"""Seconds that an answer is looked for where none may be due."""

MODELS = ("alpha", "bravo", "org/deep:tag", "filtered", "renamed")
_NAMES = (*MODELS, "alpha", "alpha", "nobody", "", "alpha\0", "ä" * 50, "x" * 5000)
_RELAYED = (
    "/v1/chat/completions",
    "/v/chat/completions",
    "/chat/completions/",
    "/v1/completions",
    "/completion",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/responses",
    "/tokenize",
    "/v1/audio/transcriptions",
    "/v1/images/edits",
)
_PATHS = (
    *_RELAYED,
    "/upstream/alpha/echo",
    "/upstream/org/deep:tag/echo?a=%20",
    "/upstream/org%2Fdeep%3Atag/echo",
    "/upstream/nobody/echo",
    "/upstream/alpha",
    "/upstream/",
    "/v1/models",
    "/v1/models/org%2Fdeep:tag",
    "/models/nobody",
    "/props?model=alpha",
    "/slots",
    "/health",
    "/running",
    "/version",
    "/api/queue",
    "/api/explain/alpha",
    "/",
    "*",
    "//",
    "/v1/../v1/models",
    "/%00",
    "/%ff%fe",
    "/v1/chat%2Fcompletions",
    "http://elsewhere/v1/models",
    "/v1/chat/completions?model=alpha" + "&a=b" * 200,
    "/v1/chat/completions?model=%ff",
    "/favicon.ico",
)  # fmt: skip
_METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "POST", "QUERY", "CONNECT")
_HEADERS = (
    "Origin: http://somewhere",
    "Accept: */*",
    "Authorization: Bearer x",
    "X-QM-Hold-Ms: 0",
    "X-QM-Hold-Ms: -1",
    "X-QM-Patience-Ms: many",
    "X-QM-Timeout-Ms: 99999999999999999999",
    "X-Session-ID: \xff\xfe",
    "Connection: keep-alive, X-Session-ID",
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Upgrade: h2c\r\nHTTP2-Settings: x\r\nConnection: Upgrade, HTTP2-Settings",
    "Access-Control-Request-Headers: \x7f",
    "Content_Length: 3",
    "Script-Name: /v1",
    "X-Forwarded-Proto: https",
    "Cookie: " + "x" * 3000,
    "Content-Type: multipart/form-data",
    "Content-Type: application/x-www-form-urlencoded",
    "Content-Type: text/plain",
    "Expect: 100-continue",
    "TE: trailers",
    "Range: bytes=0-",
    "If-None-Match: *",
    "Cookie: " + "x" * 20_000,
    "\r\n".join(f"X-{n}: y" for n in range(150)),
)


class Manner(Enum):
    """How it is sent."""

    AT_ONCE = auto()
    IN_PIECES = auto()
    HALF = auto()
    """Only the beginning, and then the client is gone."""
    RESET = auto()
    """All of it, and then the client is gone with a reset."""
    HALF_CLOSED = auto()
    """All of it, and then the client sends no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One connection.

    Attributes:
        is_whole: it is a request that has to be answered, and a connection that ends then.
    """

    data: bytes
    manner: Manner
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back for the first request of a connection."""

    status: int
    head: bytes
    body: bytes

    @property
    def is_ours(self) -> bool:
        """No child said it."""
        return b"\r\nX-QM-Model:" not in self.head


class Fuzzer:
    """Makes cases. The same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._makers: tuple[Callable[[], Case], ...] = (
            self._decent,
            self._decent,
            self._bent_body,
            self._encoded,
            self._form,
            self._smuggled,
            self._smuggled,
            self._odd_path,
            self._bent_bytes,
            self._pipelined,
        )

    def case(self) -> Case:
        """Another one."""
        return self._random.choice(self._makers)()

    # ---- kinds of requests

    def _decent(self) -> Case:
        body = self._json(self._random.choice(MODELS))
        return self._post(body, path=self._random.choice(_RELAYED))

    def _bent_body(self) -> Case:
        body = bytearray(self._json())
        chance = self._random
        match chance.randrange(8):
            case 0:
                body = body[: chance.randrange(len(body))]
            case 1:
                for _ in range(chance.randint(1, 5)):
                    body[chance.randrange(len(body))] = chance.randrange(256)
            case 2:
                body[-1:] = b',"model":"alpha"}'
            case 3:
                body[-1:] = b',"\\u006dodel":"bravo"}'
            case 4:
                body[-1:] = b',"x":' + chance.choice((b"[", b'{"a":')) * chance.randint(1, 3000)
            case 5:
                body = bytearray(chance.randbytes(chance.randrange(300)))
            case 6:
                body[-1:] = b"%b}" % (b',"":{"model":1}' * chance.randint(1, 15_000))
            case _:
                body = body.replace(b'"model"', chance.choice((b"model", b"'model'", b'"Model"')))
        return self._post(bytes(body))

    def _encoded(self) -> Case:
        chance = self._random
        coding = chance.choice(("gzip", "deflate", "zstd", "br", "gzip, gzip", "identity", "\xff"))
        encode: dict[str, Callable[[bytes], bytes]] = {
            "gzip": gzip.compress,
            "deflate": zlib.compress,
            "zstd": zstd.compress,
        }
        body = self._json("alpha")
        if chance.random() < 0.1:
            body = body[:-1] + b',"x":"%b"}' % (b" " * 3_000_000)  # more than is allowed
        body = encode.get(coding, bytes)(body)
        if chance.random() < 0.4:
            body = self._bent(body)
        return self._post(body, f"Content-Encoding: {coding}")

    def _form(self) -> Case:
        chance = self._random
        name = chance.choice(_NAMES).encode()
        body = (
            b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n%b\r\n'
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%b\r\n--b--\r\n'
        ) % (name, chance.randbytes(chance.randrange(2000)))
        if chance.random() < 0.5:
            body = self._bent(body)
        kind = "multipart/form-data; boundary=b"
        if chance.random() < 0.3:
            body, kind = b"a=%ff&model=" + name, "application/x-www-form-urlencoded"
        return self._post(body, f"Content-Type: {kind}", path="/v1/audio/transcriptions")

    def _smuggled(self) -> Case:
        body = self._json()
        length = len(body)
        inner = b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n"
        framings: tuple[tuple[str, bytes], ...] = (
            (f"Content-Length: {length}\r\nTransfer-Encoding: chunked", body),
            (f"Transfer-Encoding: chunked\r\nContent-Length: {length}", b"0\r\n\r\n" + inner),
            (f"Content-Length: {length}\r\nContent-Length: {length + 1}", body),
            (f"Content-Length: {length}\r\nContent-Length: {length}", body),
            (f"Content-Length: {length}, {length}", body),
            (f"Content-Length: +{length}", body),
            (f"Content-Length : {length}", body),
            (f"Content-Length: {length}\nX: y", body),
            (f"Content-Length:\r\n {length}", body),
            (f"Content-Length: {length}\0", body),
            ("Content-Length: -1", body),
            ("Content-Length: 99999999999999999999", body),
            ("Content-Length: 99999999", body),
            (f"Content-Length: {length - 3}", body),
            (f"X: y\rContent-Length: {length}", body),
            (f": {length}", body),
            ("Transfer-Encoding: xchunked", body),
            ("Transfer-Encoding: chunked, identity", body),
            ("Transfer-Encoding: identity, chunked", _chunks(body)),
            ("Transfer-Encoding: gzip, chunked", _chunks(body)),
            ("Transfer-Encoding: \x0bchunked", _chunks(body)),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", _chunks(body)),
            ("Transfer_Encoding: chunked", _chunks(body)),
            ("Transfer-Encoding: chunked", b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (length, body)),
            ("Transfer-Encoding: chunked", b"%x;\n\r\n%b\r\n0\r\n\r\n" % (length, body)),
            ("Transfer-Encoding: chunked", b"%x\n%b\n0\n\n" % (length, body)),
            ("Transfer-Encoding: chunked", b"0x%x\r\n%b\r\n0\r\n\r\n" % (length, body)),
            ("Transfer-Encoding: chunked", b"-1\r\n%b\r\n0\r\n\r\n" % body),
            ("Transfer-Encoding: chunked", b"ffffffffffffffffff\r\n%b" % body),
            ("Transfer-Encoding: chunked", b"%x\r\n%bXX0\r\n\r\n" % (length, body)),
            ("Transfer-Encoding: chunked", _chunks(body)[:-2] + b"Content-Length: 5\r\n\r\n"),
            ("Transfer-Encoding: chunked", _chunks(body)[:-2] + b"X: y\0\r\n\r\n"),
            ("Transfer-Encoding: chunked", _chunks(body)),
            ("Content-Length: 0", inner),
            ("Host: b", inner),
        )  # fmt: skip
        framing, sent = self._random.choice(framings)
        head = self._head(f"POST {self._random.choice(_RELAYED)} HTTP/1.1", framing)
        return Case(data=head + sent, manner=self._manner(), is_whole=False)

    def _odd_path(self) -> Case:
        chance = self._random
        method, path = chance.choice(_METHODS), chance.choice(_PATHS)
        if chance.random() < 0.2:
            path += chance.choice(("?", "#", "%", "%zz", "\xff", "/" * 50, "x" * 9000, "?a=\x01"))
        body = self._json() if chance.random() < 0.3 else b""
        framing = f"Content-Length: {len(body)}" if body else "X: y"
        version = chance.choice(("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", ""))
        head = self._head(f"{method} {path} {version}", framing)
        return Case(data=head + body, manner=self._manner(), is_whole=False)

    def _bent_bytes(self) -> Case:
        data = self._bent(self._decent().data)
        return Case(data=data, manner=self._manner(), is_whole=False)

    def _pipelined(self) -> Case:
        cases = [self._decent(), self._odd_path(), self._bent_body()]
        self._random.shuffle(cases)
        data = b"".join(case.data.replace(b"Connection: close\r\n", b"") for case in cases)
        return Case(data=data, manner=self._manner(), is_whole=False)

    # ---- their parts

    def _json(self, model: str | None = None) -> bytes:
        chance = self._random
        told: dict[str, object] = {
            "model": chance.choice(_NAMES) if model is None else model,
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": chance.randint(1, 5),
            "stream": chance.random() < 0.4,
        }
        if chance.random() < 0.1:
            told["metadata"] = chance.choice(({"session_id": "s"}, 7, {"session_id": ["s"]}))
        if chance.random() < 0.1:
            told["messages"] = chance.choice((None, [None], "hi", [{"role": {}}]))
        return json.dumps(told, ensure_ascii=chance.random() < 0.5).encode()

    def _post(self, body: bytes, header: str = "", path: str = "/v1/chat/completions") -> Case:
        framing = f"Content-Length: {len(body)}"
        more = f"{framing}\r\n{header}" if header else framing
        is_whole = self._random.random() < 0.8
        data = self._head(f"POST {path} HTTP/1.1", more, closes=is_whole) + body
        if not is_whole and self._random.random() < 0.3:
            data += data  # another one at once
        manner = Manner.AT_ONCE if is_whole else self._manner()
        if is_whole and self._random.random() < 0.05:
            manner = Manner.IN_PIECES
        return Case(data=data, manner=manner, is_whole=is_whole)

    def _head(self, line: str, more: str, *, closes: bool = True) -> bytes:
        lines = [line, "Host: a", more]
        if closes:
            lines.append("Connection: close")
        if self._random.random() < 0.2:
            lines.append(self._random.choice(_HEADERS))
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def _bent(self, data: bytes) -> bytes:
        chance = self._random
        bent = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(bent))
            match chance.randrange(4):
                case 0:
                    bent[at] = chance.randrange(256)
                case 1:
                    del bent[at : at + chance.randint(1, 9)]
                case 2:
                    bent[at:at] = chance.choice((b"\r\n", b"\0", b"\n", b"\xff", b" ", b"\r"))
                case _:
                    bent[at:at] = bent[at : at + chance.randint(1, 50)]
            bent = bent or bytearray(b"x")
        return bytes(bent)

    def _manner(self) -> Manner:
        return self._random.choices(tuple(Manner), (60, 8, 12, 10, 10))[0]


def _chunks(body: bytes) -> bytes:
    middle = len(body) // 2
    parts = (body[:middle], body[middle:])
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


HALF_OPEN = (
    b"",
    b"P",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n{",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
)
"""Beginnings of clients that send no more."""


def send(case: Case, port: int) -> bytes:
    """Be that client; returns what came back."""
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWERED_WITHIN) as client:
        try:
            _send(client, case)
        except OSError:
            return _read(client, _LOOKED_FOR)  # it was told off before it had sent everything
        if case.manner is Manner.HALF:
            return b""
        if case.manner is Manner.RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return b""
        return _read(client, _ANSWERED_WITHIN if case.is_whole else _LOOKED_FOR)


def _send(client: socket.socket, case: Case) -> None:
    match case.manner:
        case Manner.IN_PIECES:
            step = max(1, len(case.data) // 5)
            for at in range(0, len(case.data), step):
                client.sendall(case.data[at : at + step])
                time.sleep(0.005)  # a client that is slow, not a test that waits
        case Manner.HALF:
            client.sendall(case.data[: len(case.data) // 2])
        case _:
            client.sendall(case.data)
    if case.manner is Manner.HALF_CLOSED:
        client.shutdown(socket.SHUT_WR)


def _read(client: socket.socket, within: float) -> bytes:
    client.settimeout(within)
    said = b""
    try:
        while piece := client.recv(1 << 16):
            said += piece
    except OSError:
        pass
    return said


def first_answer(said: bytes, *, to_head: bool = False) -> Answer | None:
    """The first answer that is none in between; None when there is none, or not all of it."""
    head, found, rest = said.partition(b"\r\n\r\n")
    if not found:
        return None
    status = int(head.split(b" ", 2)[1])
    if status < 200:
        return first_answer(rest, to_head=to_head)
    if to_head:
        return Answer(status=status, head=head, body=b"")
    lower = head.lower()
    if b"\r\ntransfer-encoding: chunked" in lower:
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            if not (count := int(size, 16)):
                break
            body, rest = body + rest[:count], rest[count + 2 :]
        return Answer(status=status, head=head, body=body)
    length = next(
        (int(line[15:]) for line in lower.split(b"\r\n") if line.startswith(b"content-length:")),
        len(rest),
    )
    return Answer(status=status, head=head, body=rest[:length]) if len(rest) >= length else None


def answer_to(case: Case, said: bytes) -> Answer | None:
    """The answer to the first request of a case, if it came whole."""
    return first_answer(said, to_head=case.data.lstrip(b"\r\n").startswith(b"HEAD "))


def complaint(case: Case, said: bytes) -> str:
    """What is wrong with an answer; "" = nothing."""
    answer = answer_to(case, said)
    if answer is None:
        return "no answer" if case.is_whole else ""
    if not answer.is_ours or answer.status < 400:
        return ""
    if answer.status == 500:
        return "an error of ours"
    return "" if case.data.lstrip(b"\r\n").startswith(b"HEAD ") else _flaw_in(answer.body)


def _flaw_in(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        fields = set(error)
    except (ValueError, KeyError, TypeError):
        return f"no envelope: {body[:200]!r}"
    if fields != {"message", "type", "param", "code"} or not error["message"] or not error["code"]:
        return f"an envelope that lacks something: {error}"
    return ""
