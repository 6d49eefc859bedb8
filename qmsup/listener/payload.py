"""What a JSON body asks for: only the few fields qmsup needs are looked at, everything else is skipped unread.

Skipping still checks the JSON: a body that passes here is well-formed, and its bytes go upstream unchanged.
"""

import codecs

import msgspec
from msgspec import Raw

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Buffer, find_in
from qmsup.listener.members import members

_KEY = b'"model"'
_ESCAPED = b"\\u006"
"""How a letter of the key could be spelled otherwise: `m o d e l` are all \\u006x."""

_MAX_NAME = 4096
"""Bytes of a model's name; nobody has to look a longer one up."""

_UTF8_STEP = 1024 * 1024


class Fields(msgspec.Struct, frozen=True, gc=False):
    """The top-level fields that matter, as undecoded JSON; empty = absent."""

    model: Raw = Raw()
    stream: Raw = Raw()
    messages: Raw = Raw()
    system: Raw = Raw()
    prompt_cache_key: Raw = Raw()
    metadata: Raw = Raw()


_TRUE_LENGTH = len(b"true")
_decode = msgspec.json.Decoder(Fields).decode
_decode_name = msgspec.json.Decoder(str).decode


def read_fields(body: Buffer) -> Fields:
    """Check that the body is one JSON object and find its fields.

    Raises:
        RequestError: It is not, and where; or it names two models.
    """
    try:
        fields = _decode(body)
        _check_utf8(body)
    except msgspec.ValidationError as error:
        raise _bad(f"the request body must be a JSON object: {_lower(error)}") from None
    except msgspec.DecodeError as error:
        raise _bad(_where(error, len(body))) from None
    except UnicodeDecodeError as error:
        raise _bad(f"the request body is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise _bad("the request body is nested too deeply") from None
    if fields.model and _may_name_two(body):
        _check_one_model(body)
    return fields


def model_in(fields: Fields) -> str:
    """The model's name as the client wrote it; "" when the body names none.

    Raises:
        RequestError: It is something else than a string.
    """
    if not fields.model:
        return ""
    if len(fields.model) > _MAX_NAME:
        raise RequestError(
            Refusal(
                code=Code.MODEL_NOT_FOUND,
                message=f"no model has a name of {len(fields.model)} bytes; GET /v1/models lists those there are",
            )
        )
    raw = bytes(fields.model)
    if raw == b"null":
        return ""
    try:
        return _decode_name(raw)
    except msgspec.ValidationError as error:
        message = f"`model` must be a string: {_lower(error)}"
        raise RequestError(Refusal(code=Code.MODEL_MISSING, message=message)) from None


def wants_stream(fields: Fields) -> bool:
    """Whether the body says `"stream": true`."""
    return len(fields.stream) == _TRUE_LENGTH and bytes(fields.stream) == b"true"


def _check_one_model(body: Buffer) -> None:
    if sum(member.key == "model" for member in members(body)) > 1:
        raise _bad("the request body has two `model` keys: which one is meant?")


def _may_name_two(body: Buffer) -> bool:
    first = find_in(body, _KEY)
    return find_in(body, _KEY, first + 1) >= 0 or find_in(body, _ESCAPED) >= 0


def _check_utf8(body: Buffer) -> None:
    """The decoder does not look into what it skips."""
    if isinstance(body, bytes):
        if not body.isascii():
            body.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(body), _UTF8_STEP):
        piece = body[at : at + _UTF8_STEP]
        if not piece.isascii() or decoder.getstate()[0]:
            decoder.decode(piece)
    decoder.decode(b"", final=True)


def _where(error: msgspec.DecodeError, length: int) -> str:
    text = str(error)
    if "truncated" in text:  # also said of "\ud800": half of a character
        return f"the request body is no valid JSON: it ends too early, or inside an escape ({length} bytes)"
    return f"the request body is no valid JSON: {text.removeprefix('JSON is malformed: ')}"


def _lower(error: msgspec.ValidationError) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))
