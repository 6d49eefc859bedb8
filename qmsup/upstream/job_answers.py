"""What a model's server says about a job: whether it took it, how it stands, and whether it is over.

The documents are sd-server's: `id`, `kind`, `status` (queued, generating, completed, failed, cancelled), `created`,
`started`, `completed`, `queue_position`, `result`, `error`. They pass as they come, but for the id.
"""

import json
from dataclasses import dataclass
from typing import Any

from qmsup.upstream.call import Answered, Unanswered

Document = dict[str, Any]
"""What JSON says of a job."""

_ENDS = frozenset({"completed", "failed", "cancelled"})
_SUCCESS = range(200, 300)
_FORGOTTEN = frozenset({404, 410})


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
        is_over: it changes no more.
    """

    document: Document
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
    document = _document_of(answer) if answer.status in _SUCCESS else None
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
    document = _document_of(answer) if answer.status in _SUCCESS else None
    if document is None or not isinstance(document.get("status"), str):
        return Unclear(because=f"its server answers {answer.status} when asked for it")
    return Stands(document=document, is_over=is_over(document))


def is_over(document: Document) -> bool:
    """Whether a job changes no more."""
    return document.get("status") in _ENDS


def renamed(document: Document, job: str, path: str) -> Document:
    """The document under our id.

    Args:
        document: as its server gave it.
        job: our id.
        path: where a client asks for it.
    """
    fresh = {**document, "id": job}
    return {**fresh, "poll_url": path} if "poll_url" in document else fresh


def failed(document: Document, code: str, because: str, now: float) -> Document:
    """The last document of a job that came to an end its server does not tell of.

    Args:
        document: the last one known.
        code: in a word.
        because: in a sentence.
        now: in Unix seconds.
    """
    told = {key: value for key, value in document.items() if key != "poll_url"}
    error = {"code": code, "message": because}
    end = {"status": "failed", "completed": int(now), "queue_position": 0}
    return {**told, **end, "result": None, "error": error}


def _document_of(answer: Answered) -> Document | None:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
