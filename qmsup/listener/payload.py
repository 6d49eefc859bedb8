"""What a JSON body asks for: only the few fields qmsup needs are looked at, everything else is skipped unread.

Skipping still checks the JSON: a body that passes here is well-formed, and its bytes go upstream unchanged.
"""

import bisect
import codecs
import re
from typing import NamedTuple

import msgspec
from msgspec import Raw

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Buffer

_KEY = b'"model"'
_OTHER_KEY = b'"m*del"'
_ESCAPED = b"\\u006"
"""How a letter of the key could be spelled otherwise: `m o d e l` are all \\u006x."""

_UTF8_STEP = 1024 * 1024


class Fields(msgspec.Struct, frozen=True, gc=False):
    """The top-level fields that matter, as undecoded JSON; empty = absent."""

    model: Raw = Raw()
    stream: Raw = Raw()
    messages: Raw = Raw()
    system: Raw = Raw()
    prompt_cache_key: Raw = Raw()
    metadata: Raw = Raw()


class ModelField(NamedTuple):
    """Where the body's `model` stands: the value's first byte, and the byte after it."""

    start: int
    end: int


_decode = msgspec.json.Decoder(Fields).decode
_decode_name = msgspec.json.Decoder(str).decode
_KEY_AT = re.compile(re.escape(_KEY))
_VALUE_AT = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*')


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
    if bytes(fields.model) and _may_name_two(body):
        find_model(body, fields)
    return fields


def model_in(fields: Fields) -> str:
    """The model's name as the client wrote it; "" when the body names none.

    Raises:
        RequestError: It is something else than a string.
    """
    raw = bytes(fields.model)
    if not raw or raw == b"null":
        return ""
    try:
        return _decode_name(raw)
    except msgspec.ValidationError as error:
        message = f"`model` must be a string: {_lower(error)}"
        raise RequestError(Refusal(code=Code.MODEL_MISSING, message=message)) from None


def wants_stream(fields: Fields) -> bool:
    """Whether the body says `"stream": true`."""
    return bytes(fields.stream) == b"true"


def find_model(body: Buffer, fields: Fields) -> ModelField:
    """Where the one top-level `model` is.

    Candidates are all places that look like the key. The decoder itself tells which are at the top: rename those
    behind a point, and see whether it still finds a model. So two keys are seen in a few passes, however many
    nested ones a body has, and nothing but the decoder has to understand JSON.

    Args:
        body: The whole body.
        fields: What was decoded from it; has a model.

    Raises:
        RequestError: There are two, or the key is spelled with escapes.
    """
    places = [found.start() for found in _KEY_AT.finditer(body)]

    def is_found_up_to(place: int) -> bool:
        end = place + len(_KEY)
        return _has_model(body[:end] + body[end:].replace(_KEY, _OTHER_KEY))

    def is_found_without(place: int) -> bool:
        return _has_model(body[:place] + _OTHER_KEY + body[place + len(_KEY) :])

    if body.find(_ESCAPED) >= 0 and _has_model(body[:].replace(_KEY, _OTHER_KEY)):
        raise _bad("write the key `model` once and without escapes")
    at = places[0]
    if len(places) > 1 and is_found_without(at):  # most clients write it first
        at = places[bisect.bisect_left(places, 1, key=is_found_up_to)]
        if is_found_without(at):
            raise _bad("the request body has two `model` keys: which one is meant?")
    value = _VALUE_AT.match(body, at)
    assert value is not None, "the decoder found a value behind the key"
    return ModelField(value.end(), value.end() + len(bytes(fields.model)))


def _may_name_two(body: Buffer) -> bool:
    first = body.find(_KEY)
    return body.find(_KEY, first + 1) >= 0 or body.find(_ESCAPED) >= 0


def _has_model(body: bytes) -> bool:
    return bool(bytes(_decode(body).model))


def _check_utf8(body: Buffer) -> None:
    """The decoder does not look into what it skips."""
    if isinstance(body, bytes):
        if not body.isascii():
            body.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(body), _UTF8_STEP):
        decoder.decode(body[at : at + _UTF8_STEP])
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
