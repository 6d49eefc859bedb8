"""Which model a form names: multipart, as uploads of audio and pictures are, or urlencoded.

Only the delimiters of a multipart body are looked for, so a recording of 200 MB is searched where it lies.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote_plus, unquote_plus

from msgspec import Raw
from werkzeug.http import parse_options_header

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Body, Buffer, find_in
from qmsup.listener.edits import spliced
from qmsup.listener.payload import Fields
from qmsup.listener.spool import SPOOL_ABOVE

_MULTIPART = "multipart/form-data"
_URLENCODED = "application/x-www-form-urlencoded"
_MOST_PARTS = 1000
_MAX_HEAD = 8 * 1024
_MAX_BOUNDARY = 200
_MAX_VALUE = 4096
"""Bytes of what is read: a model's name, or true."""
_PAIR = re.compile(rb"(?:^|&)(model|stream)=([^&]*)")
_TRUE = frozenset({"true", "1"})
_WANTED = frozenset({"model", "stream"})
_JSON_BEGINS = (b"{", b"[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a form says.

    Attributes:
        fields: as if it were JSON.
        model: where the name stands: its first byte, and the byte after it; None = nowhere.
        is_urlencoded: a name is written so.
    """

    fields: Fields
    model: tuple[int, int] | None
    is_urlencoded: bool

    def renamed(self, body: Body, name: str) -> Body:
        """The body with another name for the model; nothing else changes, and the old one is closed."""
        assert self.model is not None, "only where there is one"
        value = quote_plus(name) if self.is_urlencoded else name
        return spliced(body, *self.model, value.encode())


class _Field(NamedTuple):
    name: str
    start: int
    end: int


def read_form(body: Body, content_type: str) -> Form | None:
    """Look for the model's name in a form.

    Returns:
        None when the body is no form. curl calls everything that it is told to post a form, JSON included; what begins
        like JSON is taken for that.

    Raises:
        RequestError: it is broken or cut short, or names two models.
    """
    kind, options = parse_options_header(content_type)
    kind = kind.lower()
    if kind == _MULTIPART:
        buffer = body.buffer()
        return _form(_multipart(buffer, options.get("boundary", "")), buffer, is_urlencoded=False)
    if kind != _URLENCODED:
        return None
    buffer = body.buffer()
    if buffer[:256].lstrip()[:1] in _JSON_BEGINS:
        return None
    if body.length > SPOOL_ABOVE:
        raise RequestError(
            Refusal(
                code=Code.BODY_TOO_LARGE,
                message="a urlencoded form of more than 1 MiB: send it as multipart/form-data or JSON",
            )
        )
    pairs = (_Field(m[1].decode(), m.start(2), m.end(2)) for m in _PAIR.finditer(buffer))
    return _form(pairs, buffer, is_urlencoded=True)


def _form(found: Iterator[_Field], buffer: Buffer, *, is_urlencoded: bool) -> Form:
    told: dict[str, str] = {}
    where: tuple[int, int] | None = None
    for field in found:
        if field.name == "model":
            if where is not None:
                raise _bad("the form has two `model` fields: which one is meant?")
            where = (field.start, field.end)
        value = _value(buffer, field)
        told[field.name] = unquote_plus(value) if is_urlencoded else value
    model = told.get("model")
    return Form(
        fields=Fields(
            model=Raw() if model is None else Raw(json.dumps(model)),
            stream=Raw(b"true" if told.get("stream", "").lower() in _TRUE else b"false"),
        ),
        model=where,
        is_urlencoded=is_urlencoded,
    )


def _value(buffer: Buffer, field: _Field) -> str:
    if field.end - field.start > _MAX_VALUE:
        raise _bad(f"the form's `{field.name}` is longer than {_MAX_VALUE} bytes")
    try:
        return buffer[field.start : field.end].decode()
    except UnicodeDecodeError:
        raise _bad(f"the form's `{field.name}` is not UTF-8") from None


def _multipart(buffer: Buffer, boundary: str) -> Iterator[_Field]:
    """The parts that are wanted. All are walked over: a form that was cut short is not taken for a whole one."""
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise _bad(
            "multipart/form-data needs a boundary of 1 to 200 characters in its Content-Type"
        )
    mark = b"--" + boundary.encode("latin-1", "replace")
    delimiter = b"\r\n" + mark
    begins = buffer[: len(mark)] == mark
    at = len(mark) if begins else _after(buffer, delimiter, 0, "does not begin with its boundary")
    for _ in range(_MOST_PARTS):
        if buffer[at : at + 2] == b"--":
            return
        start, name = _head(buffer, at)
        end, at = _end(buffer, delimiter, start)
        if name in _WANTED:
            yield _Field(name, start, end)
    raise _bad(f"the form has more than {_MOST_PARTS} parts")


def _after(buffer: Buffer, delimiter: bytes, at: int, otherwise: str) -> int:
    found = find_in(buffer, delimiter, at)
    if found < 0:
        raise _bad(f"the multipart body {otherwise}: was it cut short?")
    return found + len(delimiter)


def _head(buffer: Buffer, at: int) -> tuple[int, str]:
    """Where a part's content begins, and its name; a file has none here."""
    head = buffer[at : at + _MAX_HEAD]
    line, ended, _ = head.partition(b"\r\n")
    stop = head.find(b"\r\n\r\n", len(line))
    if not ended or line.strip(b" \t") or stop < 0:
        raise _bad("a part of the multipart body has no head that ends")
    name = ""
    for header in head[len(line) + 2 : stop].split(b"\r\n"):
        key, _, value = header.partition(b":")
        if key.strip().lower() == b"content-disposition":
            _, options = parse_options_header(value.decode("utf-8", "replace").strip())
            name = "" if "filename" in options else options.get("name", "")
    return at + stop + 4, name


def _end(buffer: Buffer, delimiter: bytes, start: int) -> tuple[int, int]:
    """Where a part's content ends, and what follows its delimiter begins."""
    at = start
    while True:
        after = _after(buffer, delimiter, at, "does not end with its boundary")
        tail = buffer[after : after + 2]
        if tail in (b"--", b"\r\n") or tail[:1] in (b" ", b"\t"):
            return after - len(delimiter), after
        at = after  # it only begins like the delimiter


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))
