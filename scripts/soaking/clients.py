"""Clients of a box: each asks once, stays or leaves, and can say for certain how that ended."""

import json
import re
import socket
import time
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override

PATIENCE_S = 60.0
"""Longer than anything here takes, so who has no end by then never gets one."""
_WORD_S = 0.02
_ASK_EVERY_S = 0.2
_CODE = re.compile(rb'"code": ?"(\w+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What one client does.

    Attributes:
        at_s: when, from the beginning of its round.
        is_job: it begins a job that takes as long as so many words, and asks for its end.
        words: how long the answer is.
        leaves_after_s: when it hangs up, whatever has come by then; None = it stays.
    """

    at_s: float
    listener: str
    model: str
    streams: bool
    words: int
    is_job: bool = False
    leaves_after_s: float | None = None
    timeout_ms: int | None = None
    hold_ms: int | None = None

    def request(self) -> bytes:
        """The bytes it sends."""
        chat = {
            "stream": self.streams,
            "max_tokens": self.words,
            "messages": [{"role": "user", "content": "hi"}],
        }
        job = {"prompt": "a cat", "seconds": self.words * _WORD_S}
        body = json.dumps({"model": self.model, **(job if self.is_job else chat)}).encode()
        path = "/sdcpp/v1/img_gen" if self.is_job else "/v1/chat/completions"
        head = f"POST {path} HTTP/1.1\r\nHost: box\r\nContent-Type: application/json\r\n"
        head += f"Connection: close\r\nContent-Length: {len(body)}\r\n"
        for name, value in (("Timeout", self.timeout_ms), ("Hold", self.hold_ms)):
            head += "" if value is None else f"X-QM-{name}-Ms: {value}\r\n"
        return f"{head}\r\n".encode() + body


class Ending(StrEnum):
    """How it went."""

    ANSWERED = "answered"
    """Whole, and right."""
    REFUSED = "refused"
    """By an error status with a code, or by an error event in a stream that had begun."""
    LEFT = "left"
    CUT = "cut"
    """The connection ended without a word."""
    STUCK = "stuck"
    WRONG = "wrong"
    """It looks whole, and is not what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one client fared; times from the beginning of its round."""

    asking: Asking
    ending: Ending
    code: str = ""
    began_s: float
    ended_s: float
    tail: bytes = b""

    @override
    def __str__(self) -> str:
        words = f"{self.ending} {self.code}".strip()
        return f"{self.began_s:.2f}..{self.ended_s:.2f} s {words}: {self.asking}, at last {self.tail!r}"


def ask(port: int, asking: Asking, round_began: float) -> Ended:
    """Ask now, and wait for the end. `round_began` is by the monotonic clock."""
    began = time.monotonic()
    leaves_at = None if asking.leaves_after_s is None else began + asking.leaves_after_s
    received, ending = _receive(port, asking, leaves_at or began + PATIENCE_S)
    if ending is None:
        ending, code = judge(asking, received)
        if asking.is_job and ending is Ending.ANSWERED:
            ending, code, received = _follow(port, code, leaves_at, began + PATIENCE_S)
    else:
        code = ""
        if ending is Ending.STUCK and leaves_at is not None:
            ending = Ending.LEFT
    return Ended(
        asking=asking,
        ending=ending,
        code=code,
        began_s=began - round_began,
        ended_s=time.monotonic() - round_began,
        tail=received[-160:],
    )


def judge(asking: Asking, received: bytes) -> tuple[Ending, str]:
    """What a connection's bytes say, once it has ended: the ending, and the code of an error."""
    head, _, body = received.partition(b"\r\n\r\n")
    status = head[9:12]
    if not status:
        return Ending.CUT, "before the head"
    if status not in {b"200", b"202"}:
        code = _CODE.search(body)
        return (Ending.REFUSED, code[1].decode()) if code else (Ending.WRONG, status.decode())
    if asking.is_job:
        return _judge_job(body)
    return (_judge_stream if asking.streams else _judge_whole)(asking, body)


def _judge_whole(asking: Asking, body: bytes) -> tuple[Ending, str]:
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except ValueError:
        return Ending.CUT, "in the body"
    except (KeyError, TypeError):
        return Ending.WRONG, "no answer"
    return (Ending.ANSWERED, "") if content == _expected(asking) else (Ending.WRONG, "words")


def _judge_job(body: bytes) -> tuple[Ending, str]:
    """Begun: ANSWERED, with the job's id for a code."""
    try:
        return Ending.ANSWERED, json.loads(body)["id"]
    except ValueError:
        return Ending.CUT, "in the body"


def _follow(
    port: int, job: str, leaves_at: float | None, until: float
) -> tuple[Ending, str, bytes]:
    """How a job ended; a worker or a connection that is lost meanwhile is none of its business."""
    seen = b""
    while (now := time.monotonic()) < until:
        if leaves_at is not None and now >= leaves_at:
            return Ending.LEFT, "", seen
        time.sleep(_ASK_EVERY_S)
        seen = _look(port, job)
        status, _, body = seen.partition(b"\r\n\r\n")
        try:
            document = json.loads(body)
        except ValueError:
            continue
        if status[9:12] == b"503":  # it is to ask again
            continue
        if status[9:12] != b"200":
            return Ending.REFUSED, document["error"]["code"], seen
        match document["status"]:
            case "completed" if document["result"]["images"]:
                return Ending.ANSWERED, "", seen
            case "failed":
                return Ending.REFUSED, document["error"]["code"], seen
            case "queued" | "generating":
                continue
            case _:
                return Ending.WRONG, f"job {document['status']}", seen
    return Ending.STUCK, "", seen


def _look(port: int, job: str) -> bytes:
    received = b""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as wire:
            head = f"GET /sdcpp/v1/jobs/{job} HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n"
            wire.sendall(head.encode())
            while part := wire.recv(65536):
                received += part
    except OSError:
        pass
    return received


def _judge_stream(asking: Asking, body: bytes) -> tuple[Ending, str]:
    if b'"error"' in body:
        code = _CODE.search(body)
        return (Ending.REFUSED, code[1].decode()) if code else (Ending.WRONG, "error without code")
    if b"data: [DONE]" not in body or not body.endswith(b"0\r\n\r\n"):
        return Ending.CUT, "in the stream"
    words = "".join(re.findall(r'"content": "([^"]*)"', body.decode(errors="replace")))
    return (Ending.ANSWERED, "") if words == _expected(asking) else (Ending.WRONG, "words")


def _expected(asking: Asking) -> str:
    return "".join(f"{asking.model}{number} " for number in range(asking.words))


def _receive(port: int, asking: Asking, until: float) -> tuple[bytes, Ending | None]:
    received = b""
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as wire:
            wire.sendall(asking.request())
            while (left := until - time.monotonic()) > 0:
                wire.settimeout(left)
                part = wire.recv(65536)
                if not part:
                    return received, None
                received += part
    except TimeoutError:
        pass
    except OSError:
        return received, None
    return received, Ending.STUCK
