"""The top-level members of a JSON object that is known to be well-formed: where each begins and ends.

What lies inside a value is skipped by the decoder, at its speed and without making anything of it; so a walk costs no
more than another look at the body, however many keys it has further down.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Buffer

MOST = 10_000
"""Members of one body. No API has a tenth of it, and each costs a step here."""

COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
"""Between two members."""

_LONGEST_KEY = 64 * 1024
_SHORT = 1024
"""Bytes of a value up to which a pattern is quicker than the decoder."""

_OPENING = re.compile(rb"[ \t\r\n]*\{[ \t\r\n]*")
_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\[\]{} \t\r\n]+")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")

_skip = msgspec.json.Decoder(Raw).decode
_text = msgspec.json.Decoder(str).decode


class Member(NamedTuple):
    """One of them, by positions in the body.

    Attributes:
        key: decoded.
        start: the key's opening quote.
        value: the value's first byte.
        end: the byte after the value.
    """

    key: str
    start: int
    value: int
    end: int


def members(body: Buffer) -> Iterator[Member]:
    """Walk over a body that the decoder took for an object.

    Raises:
        RequestError: It has too many members, or one with a name without end.
    """
    at = _OPENING.match(body)
    position = at.end() if at else 0
    count = 0
    while body[position : position + 1] == b'"':
        count += 1
        if count > MOST:
            raise _bad(f"the request body has more than {MOST} keys at its top level")
        key = _KEY.match(body, position, position + _LONGEST_KEY)
        if key is None:
            raise _bad(f"the request body has a key of more than {_LONGEST_KEY} bytes")
        end = _end_of(body, key.end())
        yield Member(_text(key[1]), key.start(), key.end(), end)
        comma = COMMA.match(body, end)
        if comma is None:
            return
        position = comma.end()


def _end_of(body: Buffer, value: int) -> int:
    limit = value + _SHORT
    found = (_STRING if body[value : value + 1] == b'"' else _SCALAR).match(body, value, limit)
    if found is not None and found.end() < limit:
        return found.end()
    end = value + _length_of(body, value)
    while body[end - 1 : end].isspace():
        end -= 1
    return end


def _length_of(body: Buffer, value: int) -> int:
    """How far the decoder gets: over a value and the spaces behind it."""
    said = ""
    with memoryview(body) as view, view[value:] as rest:
        try:
            _skip(rest)
        except msgspec.DecodeError as error:
            said = str(error)
    trailing = _TRAILING.search(said)
    assert trailing is not None, f"the decoder stops where a value ends: {said}"
    return int(trailing[1]) - 1


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))
