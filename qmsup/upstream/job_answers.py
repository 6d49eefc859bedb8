"""What a model's server says about a job: whether it took it, how it stands, and whether it is over.

The documents are sd-server's: `id`, `kind`, `status` (queued, generating, completed, failed, cancelled), `created`,
`started`, `completed`, `queue_position`, `result`, `error`. They pass as they come, but for the id.

The last one may hold a video of many megabytes. To parse that, and write it again, would stop all other threads for
half a second; so in a large one just two members are found, by their names: `"status"` in quotes, with a colon after
it, stands inside no string of JSON.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from qmsup.upstream.call import Answered, Unanswered

Document = dict[str, Any]
"""What JSON says of a job that has no result yet."""

_ENDS = frozenset({"completed", "failed", "cancelled"})
_SUCCESS = range(200, 300)
_FORGOTTEN = frozenset({404, 410})
_LARGE = 64 * 1024
_STATUS = re.compile(rb'"status"\s*:\s*"(\w+)"')
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The job was taken.

    Attributes:
        theirs: the id that its server gave it.
    """

    theirs: str
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """How a job stands.

    Attributes:
        text: its document, in JSON.
        is_over: it changes no more.
    """

    text: bytes
    is_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Its server does not know it, or not any more."""

    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    """The answer tells nothing of the job: ask again."""

    because: str


def begun(answer: Answered) -> Begun | None:
    """What a server made of a new job; None = it took none."""
    document = _document_of(answer.body) if answer.status in _SUCCESS else None
    if document is None:
        return None
    theirs = document.get("id")
    if isinstance(theirs, bool) or not isinstance(theirs, str | int) or theirs == "":
        return None
    return Begun(theirs=str(theirs), document=document)


def stands(answer: Answered | Unanswered) -> Stands | Forgotten | Unclear:
    """How a job stands by the answer to a question about it."""
    if isinstance(answer, Unanswered):
        return Unclear(because=answer.because)
    if answer.status in _FORGOTTEN:
        return Forgotten(
            because=f"its server does not know it any more (it answers {answer.status})"
        )
    status = status_in(answer.body) if answer.status in _SUCCESS else None
    if status is None:
        return Unclear(because=f"its server answers {answer.status} when asked for it")
    return Stands(text=answer.body, is_over=status in _ENDS)


def status_in(text: bytes) -> str | None:
    """The status that a document tells; None = it is no document of a job."""
    if len(text) <= _LARGE:
        status = (_document_of(text) or {}).get("status")
        return status if isinstance(status, str) else None
    # The real server sorts its members, and this is the last of them.
    found = _STATUS.match(text, max(0, text.rfind(b'"status"')))
    return None if found is None else found[1].decode()


def is_over(text: bytes) -> bool:
    """Whether a job changes no more, by its document."""
    return status_in(text) in _ENDS


def named(document: Document, job: str, path: str) -> bytes:
    """The text of a document, under our id.

    Args:
        document: as its server gave it.
        job: our id.
        path: where a client asks for it.
    """
    fresh = {**document, "id": job}
    return json.dumps({**fresh, "poll_url": path} if "poll_url" in document else fresh).encode()


def renamed(text: bytes, job: str) -> bytes:
    """The document under our id; all else of it stays as it came.

    Args:
        text: as its server gave it.
        job: our id.
    """
    return _ID.sub(f'"id":"{job}"'.encode(), text, count=1)


def failed(text: bytes, code: str, because: str, now: float) -> bytes:
    """The last document of a job that came to an end its server does not tell of.

    Args:
        text: the last one known.
        code: in a word.
        because: in a sentence.
        now: in Unix seconds.
    """
    told = {k: value for k, value in (_document_of(text) or {}).items() if k != "poll_url"}
    error = {"code": code, "message": because}
    end = {"status": "failed", "completed": int(now), "queue_position": 0}
    return json.dumps({**told, **end, "result": None, "error": error}).encode()


def _document_of(text: bytes) -> Document | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
