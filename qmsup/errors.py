"""Every error qmsup names: what an operator can fix, what a client did, what the world did, what we did wrong.

`Code` is the closed list of codes that clients see; `status_of` gives the HTTP status each one travels with.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from qmsup.units import Seconds


class Code(StrEnum):
    """Why a request was refused, as clients read it in `error.code`."""

    BAD_REQUEST = "bad_request"
    MODEL_MISSING = "model_missing"
    INVALID_API_KEY = "invalid_api_key"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    QUEUE_FULL = "queue_full"
    LINE_FULL = "line_full"
    INTERNAL_ERROR = "internal_error"
    MODEL_LOAD_FAILED = "model_load_failed"
    UPSTREAM_FAILED = "upstream_failed"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_UNLOADED = "model_unloaded"
    MODEL_NOT_LOADED = "model_not_loaded"
    WAIT_TIMEOUT = "wait_timeout"
    SHUTTING_DOWN = "shutting_down"
    SCHEDULER_UNAVAILABLE = "scheduler_unavailable"
    INSUFFICIENT_VRAM = "insufficient_vram"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    ROUTE_NOT_FOUND = "route_not_found"
    JOB_NOT_FOUND = "job_not_found"
    BLOCKED_BY_PIN = "blocked_by_pin"
    DRAINING = "draining"
    NO_HOST = "no_host"
    CONFIG_INVALID = "config_invalid"
    """Only for `reload`: the file cannot be used. The message has a line for each problem."""


_CODES_BY_STATUS = {
    400: (
        Code.BAD_REQUEST,
        Code.MODEL_MISSING,
        Code.CONTEXT_LENGTH_EXCEEDED,
        Code.CONFIG_INVALID,
    ),
    401: (Code.INVALID_API_KEY,),
    403: (Code.MODEL_NOT_ALLOWED,),
    404: (Code.MODEL_NOT_FOUND, Code.ROUTE_NOT_FOUND, Code.JOB_NOT_FOUND, Code.NOT_FOUND),
    405: (Code.METHOD_NOT_ALLOWED,),
    409: (Code.BLOCKED_BY_PIN,),
    413: (Code.BODY_TOO_LARGE,),
    415: (Code.UNSUPPORTED_ENCODING,),
    429: (Code.QUEUE_FULL, Code.LINE_FULL),
    500: (Code.INTERNAL_ERROR,),
    502: (Code.MODEL_LOAD_FAILED, Code.UPSTREAM_FAILED),
    503: (
        Code.MODEL_UNAVAILABLE,
        Code.MODEL_UNLOADED,
        Code.MODEL_NOT_LOADED,
        Code.WAIT_TIMEOUT,
        Code.DRAINING,
        Code.NO_HOST,
        Code.SHUTTING_DOWN,
        Code.SCHEDULER_UNAVAILABLE,
    ),
    507: (Code.INSUFFICIENT_VRAM,),
}
_STATUS = {code: status for status, codes in _CODES_BY_STATUS.items() for code in codes}


def status_of(code: Code) -> int:
    """The HTTP status a code travels with (interfaces: errors)."""
    return _STATUS[code]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request's end without a grant, as a value: the core returns it, the listener renders it."""

    code: Code
    message: str
    retry_after: Seconds | None = None


class QmsupError(Exception):
    """The root of what qmsup raises on purpose."""


class ConfigError(QmsupError):
    """The configuration cannot be used. Each problem names its key, its line where known, and what to do."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class RequestError(QmsupError):
    """A client's request cannot be served; `refusal` says how to answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class ChildError(QmsupError):
    """A child could not be started, or died. The text is for operators and clients alike."""


class PeerError(QmsupError):
    """A message from another process cannot be understood (bad frame, other protocol version)."""


class SchedulerUnavailableError(QmsupError):
    """The scheduler does not answer: it is not running, or restarting. Start `qmsup serve`, or wait."""


class RefusedError(QmsupError):
    """The scheduler refused what a control client asked; the text says why and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class AskTimedOutError(QmsupError):
    """The scheduler lives but has not answered in time. It may still do what was asked; ask again, or look."""


class InvariantBrokenError(QmsupError):
    """Our bug: the scheduler's state contradicts itself. The process ends; its supervisor starts a fresh one."""


_PLAIN_KEY = re.compile(r"[\w:/@+-]+")
_SHOWN = 60


def key_text(key: str) -> str:
    """A key as it is told: bare when that is clear, else quoted; never more than one line."""
    if len(key) > _SHOWN:
        key = key[: _SHOWN - 1] + "…"
    return key if _PLAIN_KEY.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    """Text as it is told: in quotes, on one line, whatever it holds."""
    # Half pairs and foreign line ends are told as \\u escapes, so that a problem is one line.
    return json.dumps(text, ensure_ascii=not text.isprintable())
