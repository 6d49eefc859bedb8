"""Structured log lines: an event name and fields, as text for people or JSON for programs.

`log = Log("scheduler")`, then `log.info("swap.started", model=b, evict=a)`. No secrets and no prompt text, ever.
"""

import json
import logging
import os
import select
import stat
import sys
import time
from typing import TextIO

from typing_extensions import override

_FIELDS = "qmsup_fields"
_AT_ONCE = 10
_PATIENCE_MS = 500
"""For whoever reads the log. It is had once: who takes nothing is not waited for again until he does."""


class _Ration:
    """Of lines about one event."""

    __slots__ = ("_at", "_left", "left_out")

    def __init__(self) -> None:
        self._left = float(_AT_ONCE)
        self._at: float | None = None
        self.left_out = 0

    def takes(self, now: float) -> bool:
        if self._at is not None:
            self._left = min(_AT_ONCE, self._left + now - self._at)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Log:
    """A named logger whose calls take fields instead of a sentence."""

    __slots__ = ("_logger", "_rations")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"qmsup.{name}")
        self._rations: dict[str, _Ration] = {}

    def debug(self, event: str, **fields: object) -> None:
        """The story of a request, for a developer."""
        if self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug(event, extra={_FIELDS: fields})

    def info(self, event: str, **fields: object) -> None:
        """The story of a day, for an operator."""
        self._logger.info(event, extra={_FIELDS: fields})

    def warning(self, event: str, **fields: object) -> None:
        """Something an operator may want to look at."""
        self._logger.warning(event, extra={_FIELDS: fields})

    def warning_of_a_peer(self, event: str, **fields: object) -> None:
        """The same about what a peer sent, who may send it without end: ten at once, then one a second.

        The next line says in `left_out` how many were not written.
        """
        if (left_out := self._left_out(event)) is not None:
            self.warning(event, **fields, left_out=left_out or None)

    def error(self, event: str, **fields: object) -> None:
        """Something that failed."""
        self._logger.error(event, extra={_FIELDS: fields})

    def exception(self, event: str, **fields: object) -> None:
        """Something that failed, with the traceback of the exception being handled."""
        self._logger.error(event, extra={_FIELDS: fields}, exc_info=True)  # noqa: LOG014 - called in handlers

    def exception_again(self, event: str, **fields: object) -> None:
        """The same about what may fail without end, told as seldom as what a peer sends."""
        if (left_out := self._left_out(event)) is not None:
            self.exception(event, **fields, left_out=left_out or None)

    def _left_out(self, event: str) -> int | None:
        """How many lines about it were not written since the last one; None = nor is this one."""
        ration = self._rations.setdefault(event, _Ration())
        if not ration.takes(time.monotonic()):
            ration.left_out += 1
            return None
        left_out, ration.left_out = ration.left_out, 0
        return left_out


class _TextFormatter(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, _FIELDS, {})
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        head = f"{clock}.{int(record.msecs):03d} {record.levelname.lower():7} {record.getMessage()}"
        tail = "".join(
            f" {key}={_text(value)}" for key, value in fields.items() if value is not None
        )
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return head + tail + trace


class _JsonFormatter(logging.Formatter):
    @override
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = getattr(record, _FIELDS, {})
        line: dict[str, object] = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **fields,
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Stream(logging.StreamHandler[TextIO]):
    """Writes to what is read slowly, or not at all, without waiting for it.

    A pipe is full when its reader is frozen, a terminal takes nothing after Ctrl-S: whoever wrote to it then would be
    frozen, too, and with it every stream, or every decision. What is left out is counted, and told when there is room.
    Lines of several processes that come at the same moment may still fill a pipe between the look and the writing.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._poll = _poll_of(stream)
        self._left_out = 0

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if not self._has_room():
            self._left_out += 1
            return
        if self._left_out:
            told, self._left_out = self._left_out, 0
            because = "nobody took them: what reads this log was stopped, or is too slow"
            super().emit(_record("log.left_out", lines=told, because=because))
        super().emit(record)

    def _has_room(self) -> bool:
        return self._poll is None or bool(self._poll.poll(0 if self._left_out else _PATIENCE_MS))


def _poll_of(stream: TextIO) -> "select.poll | None":
    """Tells whether there is room; None = there always is, or nobody can tell."""
    try:
        fd = stream.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError):
        return None
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
        return None
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return poll


def _record(event: str, **fields: object) -> logging.LogRecord:
    attributes = {"name": "qmsup.log", "levelno": logging.WARNING, "levelname": "WARNING"}
    return logging.makeLogRecord({**attributes, "msg": event, _FIELDS: fields})


def _text(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return json.dumps(text) if not text or any(c in text for c in ' \n\t"=') else text


def set_up(*, level: str = "info", style: str = "auto") -> None:
    """Send the process's log to stderr; `style` is `text`, `json`, or `auto` (text on a terminal)."""
    as_text = style == "text" or (style == "auto" and sys.stderr.isatty())
    handler = _Stream(sys.stderr)
    handler.setFormatter(_TextFormatter() if as_text else _JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("qmsup").setLevel(level.upper())
