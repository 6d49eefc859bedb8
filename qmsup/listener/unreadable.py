"""What gunicorn's parser cannot read as a request, refused like anything else: in the envelope, with what to change."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus

from gunicorn.http import Request, errors

from qmsup.errors import Code, Refusal
from qmsup.listener.errors import error_response
from qmsup.listener.request_ids import new_request_id
from qmsup.log import Log

_SHOWN = 200
_BAD = HTTPStatus.BAD_REQUEST
_LINE = (
    "this port speaks plain HTTP/1.1: a request begins with `METHOD /path HTTP/1.1`,"
    " and at most 100 lines of `Name: value` follow"
)
_HEADER = "a header cannot be understood; write `Name: value`, each once and on one line"
_CHUNKS = "the chunks of the request body are malformed"

_WORDS: Sequence[tuple[type[BaseException], HTTPStatus, str]] = (
    (
        errors.LimitRequestLine,
        HTTPStatus.REQUEST_URI_TOO_LONG,
        "the path and query are too long; put what is long into the body",
    ),
    (
        errors.LimitRequestHeaders,
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        "there are too many headers, or one is too long",
    ),
    (
        errors.ExpectationFailed,
        HTTPStatus.EXPECTATION_FAILED,
        "`Expect: 100-continue` is the only expectation that can be met",
    ),
    (
        errors.UnsupportedTransferCoding,
        _BAD,
        "the only Transfer-Encoding of a request is chunked; what compresses it goes into Content-Encoding",
    ),
    (errors.ObsoleteFolding, _BAD, "a header goes on in the next line; write it on one"),
    (errors.InvalidHeader, _BAD, _HEADER),
    (errors.InvalidHeaderName, _BAD, _HEADER),
    (errors.InvalidRequestLine, _BAD, _LINE),
    (errors.InvalidRequestMethod, _BAD, _LINE),
    (errors.InvalidHTTPVersion, _BAD, _LINE),
    (errors.InvalidChunkSize, _BAD, _CHUNKS),
    (errors.InvalidChunkExtension, _BAD, _CHUNKS),
    (errors.ChunkMissingTerminator, _BAD, _CHUNKS),
)
"""By kind of error; the first that fits."""

_OURS = (
    errors.InvalidResponseHeader,  # type: ignore[attr-defined]  # the stubs are of an older one
    errors.InvalidResponseHeaderName,  # type: ignore[attr-defined]  # the same
    errors.ConfigurationProblem,
)
"""Called parse errors too, but no request is to blame for them."""

_log = Log("listener")


def refuse(sock: socket.socket, error: BaseException, req: Request | None, client: object) -> None:
    """Answer a request that ended in an error of gunicorn's; the connection ends with the answer.

    Args:
        sock: the client's.
        error: what was raised.
        req: as far as it was read; None = not even its head.
        client: where it came from, for the log.
    """
    request = new_request_id()
    if isinstance(error, errors.ParseException) and not isinstance(error, _OURS):
        status, refusal = _judged(error)
        # The words of the error hold what the client sent, which is not for the log.
        _log.info(
            "request.unreadable",
            request=request,
            because=type(error).__name__,
            status=int(status),
            client=client[0] if isinstance(client, tuple) else client,
        )
    else:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        refusal = Refusal(
            code=Code.INTERNAL_ERROR, message="qmsup made an error; its log has the details"
        )
        _log.exception("request.broken", request=request)
    answer = error_response(
        refusal,
        origin=_origin_of(req),
        request_id=request,
        close=True,
        head_only=req is not None and req.method == "HEAD",
        status=status,
    )
    with suppress(OSError):  # nobody is there to read it
        sock.send(answer, socket.MSG_DONTWAIT)


def _judged(error: BaseException) -> tuple[HTTPStatus, Refusal]:
    found = ((status, words) for kind, status, words in _WORDS if isinstance(error, kind))
    status, words = next(found, (_BAD, "the request cannot be understood"))
    detail = str(error)[:_SHOWN]
    return status, Refusal(code=Code.BAD_REQUEST, message=f"{words} ({detail})")


def _origin_of(req: Request | None) -> str | None:
    headers: Sequence[tuple[str, str]] = req.headers if req is not None else ()
    return next((value for name, value in headers if name == "ORIGIN"), None)
