"""A stand-in for llama-server: a real program, of the standard library alone, that misbehaves on request.

    python child.py --port 21000 --name alpha --load-seconds 0.2

What it does not know (`-m`, `-c`, `-ngl` ...) it ignores. As the real one it opens its port before it loads, answers
503 to everything while loading, tells its port and troubles on stderr, and after a TERM stops listening but ends only
when the last request has. `GET /stats` counts what it saw; `/echo` gives a request back. With `--vram` it takes memory
of a fake GPU as it loads, with `--grow-vram` more as it serves.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_MAX_HEAD = 256 * 1024


@dataclass(kw_only=True)
class Request:
    """One request, read whole."""

    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def fields(self) -> dict[str, Any]:
        parsed = json.loads(self.body)
        if not isinstance(parsed, dict):
            raise ValueError("the body is no JSON object")  # noqa: TRY004 - of the value sent
        return parsed


@dataclass(kw_only=True)
class Stats:
    requests: int = 0
    finished: int = 0
    cancelled: int = 0
    connections: int = 0
    open: int = 0
    most_open: int = 0
    events: int = 0
    started: float = field(default_factory=time.time)


def say(text: str) -> None:
    with contextlib.suppress(OSError):  # as the real one does when the disk is full
        print(text, file=sys.stderr, flush=True)


class FakeChild:
    """The server: one asyncio task for each connection."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stats = Stats()
        self.is_loading = True
        self.busy = 0
        self.is_idle = asyncio.Event()
        self.is_idle.set()
        self.is_told_to_end = asyncio.Event()
        self.grandchildren: list[subprocess.Popen[bytes]] = []
        self.yet_to_take = list(options.grow_vram)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        if self.options.ignore_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        else:
            loop.add_signal_handler(signal.SIGTERM, self._take_term)
        signal.signal(signal.SIGUSR1, hang)
        signal.signal(signal.SIGUSR2, toil)
        host, port = self.options.host, self.options.port
        try:
            self._lose_port_once()
            server = await asyncio.start_server(
                self._serve, host, port, limit=_MAX_HEAD, backlog=512
            )
        except OSError:
            say(f"couldn't bind HTTP server socket, hostname: {host}, port: {port}")
            return 1
        self._start_grandchild()
        self._spam()
        await self._load()
        if self.options.exit_code is not None:
            say(self.options.last_words)
            os._exit(self.options.exit_code)  # at once, whatever it is in the middle of
        self.is_loading = False
        say(f"listening on http://{host}:{port}")
        await self.is_told_to_end.wait()
        server.close()
        await self.is_idle.wait()
        return 0

    def _lose_port_once(self) -> None:
        if (mark := self.options.lose_port_once) and not mark.exists():
            mark.touch()
            raise OSError

    def _take_term(self) -> None:
        if self.is_told_to_end.is_set() or self.is_loading:
            os._exit(1)
        self.is_told_to_end.set()

    async def _load(self) -> None:
        began = time.monotonic()
        seconds, vram, taken = float(self.options.load_seconds), int(self.options.vram), 0
        while (spent := time.monotonic() - began) < seconds:
            taken += self._take(int(vram * spent / seconds) - taken)
            await asyncio.sleep(min(seconds - spent, 0.1 if vram else 0.5))
        self._take(vram - taken)

    def _take(self, mib: int) -> int:
        if mib <= 0:
            return 0
        if (root := str(Path(__file__).parents[2])) not in sys.path:
            sys.path.insert(0, root)  # for it is started as a file
        from tests.fakes import gpu

        try:
            gpu.claim(Path(self.options.fake_gpu), mib, card=self.options.card)
        except gpu.OutOfMemory as error:
            say(f"ggml_backend_cuda_buffer_type_alloc_buffer: {error}")
            say("llama_model_load: error loading model: unable to allocate CUDA0 buffer")
            os._exit(1)
        return mib

    def _start_grandchild(self) -> None:
        if self.options.grandchild is not None:
            is_apart = self.options.grandchild == "own-session"
            program = "import os,signal,time;signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            program += "print('grandchild', os.getpid(), flush=True);time.sleep(3600)"
            process = subprocess.Popen(
                [sys.executable, "-S", "-c", program],
                start_new_session=is_apart,
                stdout=sys.stderr,
            )
            self.grandchildren.append(process)

    def _spam(self) -> None:
        line = "spam " * 40 + "\n"
        for _ in range(self.options.spam_log // len(line)):
            sys.stderr.write(line)
        for said in self.options.load_log:
            sys.stderr.write(f"{said}\n")
        sys.stderr.flush()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stats.connections += 1
        self.stats.open += 1
        self.stats.most_open = max(self.stats.most_open, self.stats.open)
        try:
            while (request := await read_request(reader, writer)) is not None:
                if not await self._serve_one(request, reader, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, ValueError):
            self.stats.cancelled += 1
        finally:
            self.stats.open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve_one(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        self._begins()
        try:
            if self.options.stall == "all":
                await reader.read()
                return False
            if self.is_loading:
                error = {"message": "Loading model", "type": "unavailable_error", "code": 503}
                await answer(writer, 503, {"error": error}, keep=False)
                return False
            keep = request.version == "HTTP/1.1" and request.header("connection").lower() != "close"
            await self._route(request, reader, writer, keep=keep)
            return keep
        finally:
            self._ends()

    def _begins(self) -> None:
        self.busy += 1
        self.is_idle.clear()

    def _ends(self) -> None:
        self.busy -= 1
        if self.busy == 0:
            self.is_idle.set()

    async def _route(
        self,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        keep: bool,
    ) -> None:
        path = request.target.partition("?")[0]
        name = self.options.name
        match path:
            case "/health" | "/v1/health":
                await answer(writer, 200, {"status": "ok"}, keep=keep)
            case "/props" | "/slots":
                if path == "/slots" and self.options.wedged:
                    await reader.read()  # the thread that computes never comes to answer it
                await answer(writer, 200, self._props(), keep=keep)
            case "/v1/models":
                models = {"object": "list", "data": [{"id": name, "object": "model"}]}
                await answer(writer, 200, models, keep=keep)
            case "/stats":
                await answer(writer, 200, vars(self.stats) | {"pid": os.getpid()}, keep=keep)
            case "/ws":
                await self._tunnel(reader, writer)
            case "/echo":
                await answer(writer, 200, echo(request), keep=keep)
            case "/v1/chat/completions" | "/v1/completions" | "/completion" | "/v1/embeddings":
                await self._complete(path, request, reader, writer, keep=keep)
            case _:
                error = {"message": "File Not Found", "type": "not_found_error", "code": 404}
                await answer(writer, 404, {"error": error}, keep=keep)

    def _props(self) -> dict[str, Any]:
        told: dict[str, Any] = {"total_slots": self.options.slots}
        if self.options.ctx:
            told["default_generation_settings"] = {"n_ctx": self.options.ctx}
        return told

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        writer.write(head.encode())
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def _complete(
        self,
        path: str,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        keep: bool,
    ) -> None:
        self.stats.requests += 1
        is_last = self.stats.requests == self.options.die_after_requests
        if self.options.stall == "posts":
            await reader.read()
            raise ConnectionResetError
        try:
            asked = request.fields()
        except ValueError as wrong:
            error = {"message": str(wrong), "type": "invalid_request_error", "code": 400}
            await answer(writer, 400, {"error": error}, keep=keep)
            return
        self._take(self.yet_to_take.pop(0) if self.yet_to_take else 0)
        await self._pause(self.options.first_byte_seconds, reader)
        count = int(asked.get("max_tokens") or self.options.events)
        words = (f"{self.options.name}{number} " for number in range(count))
        if asked.get("stream"):
            await self._stream(words, reader, writer, is_last=is_last)
        elif is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            for _ in range(count) if self.options.paces_json else ():
                await self._pause(self.options.event_interval, reader)
            await answer(writer, 200, self._whole(path, list(words)), keep=keep)
        self.stats.finished += 1

    async def _stream(
        self,
        words: Iterable[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_last: bool,
    ) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nX-Accel-Buffering: no\r\n\r\n"
        )
        for number, word in enumerate(words):
            if number:
                await self._pause(self.options.event_interval, reader)
            await self._send_event(writer, self._chunk({"content": word}, None))
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.options.until is not None and self.options.until.exists():
                break
        await self._send_event(writer, self._chunk({}, self.options.finish_reason))
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()

    async def _send_event(self, writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
        self.stats.events += 1
        writer.write(chunk(b"data: " + json.dumps(event).encode() + b"\n\n"))
        await writer.drain()

    async def _pause(self, seconds: float, reader: asyncio.StreamReader) -> None:
        await asyncio.sleep(seconds)
        if reader.at_eof():
            raise ConnectionResetError

    def _chunk(self, delta: dict[str, str], finish: str | None) -> dict[str, Any]:
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.options.name,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    def _whole(self, path: str, words: list[str]) -> dict[str, Any]:
        text, name = "".join(words), self.options.name
        if path == "/completion":
            return {"content": text, "stop": True, "model": name}
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2, 0.3]}]
            return {"object": "list", "model": name, "data": data}
        is_chat = path == "/v1/chat/completions"
        message: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": int(time.time()),
            "model": name,
            "choices": [
                {"index": 0, "finish_reason": self.options.finish_reason}
                | (message if is_chat else {"text": text})
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": len(words)},
        }


def hang(*_: object) -> None:
    """Do and answer nothing any more, whatever comes."""
    while True:
        signal.pause()


def toil(*_: object) -> None:
    """Answer nothing any more, but work."""
    while True:
        sum(range(100_000))
        say("at work")
        time.sleep(0.01)


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if not ended.partial:
            return None
        raise
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, version = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = [(key, value.strip()) for key, _, value in pairs]
    request = Request(method=method, target=target, version=version, headers=headers)
    if request.header("expect").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in request.header("transfer-encoding").lower():
        request.body = b"".join([part async for part in read_chunks(reader)])
    elif length := int(request.header("content-length") or 0):
        request.body = await reader.readexactly(length)
    return request


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).partition(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():
        pass


def chunk(part: bytes) -> bytes:
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"


def echo(request: Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "body": request.body.decode(errors="replace"),
        "body_base64": base64.b64encode(request.body).decode(),
    }


async def answer(
    writer: asyncio.StreamWriter, status: int, content: dict[str, Any], *, keep: bool
) -> None:
    body = json.dumps(content).encode()
    writer.write(
        f"HTTP/1.1 {status} Status\r\nContent-Type: application/json; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, required=True)
    add("--name", default="fake", help="stands in every answer, and as the model's id")
    add("--slots", type=int, default=4, help="what /props tells")
    add("--ctx", type=int, default=0, help="tokens of a slot, as /props tells")
    add("--lose-port-once", type=Path, metavar="FILE", help="fail to bind, unless FILE is there")
    add("--wedged", action="store_true", help="never answer /slots, as where a GPU hangs")
    add("--load-seconds", type=float, default=0.0)
    add("--vram", type=int, default=0, metavar="MIB", help="taken bit by bit as it loads")
    add("--grow-vram", type=int, nargs="*", default=[], metavar="MIB", help="with each completion")
    add("--fake-gpu", default=os.environ.get("QMSUP_FAKE_NVML"), metavar="FILE", help="whose")
    add("--card", metavar="UUID", help="which of the cards; the first")
    add("--exit-code", type=int, help="end with this code once loaded")
    add("--last-words", default="exiting due to model loading error", help="before --exit-code")
    add("--ignore-term", action="store_true")
    add("--spam-log", type=int, default=0, metavar="BYTES", help="written before it loads")
    add("--load-log", action="append", default=[], metavar="LINE", help="written before it loads")
    add("--grandchild", nargs="?", const="same-session", choices=["same-session", "own-session"])
    add("--die-after-requests", type=int, metavar="N", help="KILL itself in the N-th completion")
    add("--stall", nargs="?", const="all", choices=["all", "posts"], help="accept, never answer")
    add("--events", type=int, default=5, help="words in an answer without max_tokens")
    add("--event-interval", type=float, default=0.0, metavar="SECONDS")
    add(
        "--until",
        type=Path,
        metavar="FILE",
        help="once it is there, streams end with their next word",
    )
    add("--paces-json", action="store_true", help="an answer in one piece takes as long")
    add("--first-byte-seconds", type=float, default=0.0)
    add("--finish-reason", default="stop")
    return parser.parse_known_args(arguments)[0]


if __name__ == "__main__":
    sys.exit(asyncio.run(FakeChild(options_of(sys.argv[1:])).run()))
