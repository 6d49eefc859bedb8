"""Jobs over HTTP: how one is handed on, and how it stands.

A new job waits in the line and gets a grant as every request does; only then it goes to the scheduler process, not to
the model's server: whoever looks after a job must not end with this worker. How a job stands is read from its document
on disk, so it needs no lease, loads nothing, and is there when the model has long been stopped. Where the disk took
none, the scheduler process knows.
"""

import json
import re
import socket
from collections.abc import Container
from dataclasses import replace
from http.client import OK, HTTPConnection, HTTPException
from pathlib import Path

from typing_extensions import override
from werkzeug.wrappers import Response

from qmsup import places
from qmsup.errors import Code, Refusal, RequestError
from qmsup.job_ids import REQUEST_HEADER, is_job_id, job_path
from qmsup.listener import long_asks
from qmsup.listener.relay.order import RelayOrder
from qmsup.units import Seconds
from qmsup.upstream import job_answers

_CANCELLED_WITHIN = Seconds(25.0)
"""A little more than the scheduler process takes for it."""
_TOLD_WITHIN = Seconds(2.0)
"""It has it in memory."""
_RETRY = Seconds(2.0)
_OF_JOB = re.compile(re.escape(job_path("")) + r"([^/]+)(?:/cancel)?/?")


def as_job(order: RelayOrder) -> RelayOrder:
    """The same request, to be begun by the scheduler process once it is granted."""
    named = f"{REQUEST_HEADER}: {order.request}\r\n".encode()
    return replace(order, head=order.head + named, via=str(places.jobs_socket()))


def path_of_job(path: str) -> str | None:
    """What of a path to a model's own server is about a job of ours; None = nothing is."""
    found = _OF_JOB.search(path)
    if found is None or not path.endswith(found[0]) or not is_job_id(found[1]):
        return None
    return found[0]


Models = Container[object]


def read(job: str, models: Models | None = None) -> Response:
    """How a job stands.

    Args:
        job: its id.
        models: those whose jobs may be read; None = whoever knows an id may.

    Raises:
        RequestError: there is none of this id that may be read, or not any more; or nobody is there who knows.
    """
    return _shown(200, _document(job, models))


def cancel(job: str, models: Models | None = None) -> Response:
    """Have a job given up; one that renders already is not, and the answer says so.

    Args:
        job: its id.
        models: those whose jobs may be given up; None = whoever knows an id may.

    Raises:
        RequestError: there is none of this id that may be, nobody is there who could do it, or too many wait for that.
    """
    document = _document(job, models)
    if job_answers.is_over(document):
        return _shown(200, document)
    try:
        with long_asks.place():
            return _shown(*_asked("POST", f"{job_path(job)}/cancel", _CANCELLED_WITHIN))
    except (OSError, HTTPException) as error:
        message = "the scheduler does not answer: is it running? Nothing was cancelled, as far as is known"
        raise RequestError(
            Refusal(code=Code.SCHEDULER_UNAVAILABLE, message=message, retry_after=_RETRY)
        ) from error


def _document(job: str, models: Models | None) -> bytes:
    if is_job_id(job) and (models is None or _model_of(job) in models):
        try:
            return places.job_document(job).read_bytes()
        except OSError:
            status, document = _told(job)
            if status == OK:
                return document
    message = f"there is no job {job[:200]!r}: documents are kept for ten minutes after a job's end"
    raise RequestError(Refusal(code=Code.JOB_NOT_FOUND, message=message))


def _told(job: str) -> tuple[int, bytes]:
    """What the scheduler process knows of a job that is not on disk. Who asks again later must not give it up."""
    try:
        return _asked("GET", job_path(job), _TOLD_WITHIN)
    except (OSError, HTTPException) as error:
        message = f"job {job} is not on disk, and the scheduler does not answer whether it has it: ask again"
        raise RequestError(
            Refusal(code=Code.SCHEDULER_UNAVAILABLE, message=message, retry_after=_RETRY)
        ) from error


def _model_of(job: str) -> object:
    """None = it is not on record, and nobody's key is good for it."""
    try:
        record = json.loads(places.job_record(job).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return record.get("model") if isinstance(record, dict) else None


def _asked(method: str, path: str, within: Seconds) -> tuple[int, bytes]:
    """What the scheduler process says: status and body."""
    door = _Door(places.jobs_socket(), within)
    try:
        door.request(method, path)
        answer = door.getresponse()
        return answer.status, answer.read()
    finally:
        door.close()


def _shown(status: int, body: bytes) -> Response:
    kept = {"Cache-Control": "no-store"}
    return Response(body, status=status, content_type="application/json", headers=kept)


class _Door(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, within: Seconds) -> None:
        super().__init__("localhost", timeout=within)
        self._path = path

    @override
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
