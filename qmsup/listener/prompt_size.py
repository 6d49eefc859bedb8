"""About how many tokens a JSON body's prompt has, by the bytes of its texts: images are not counted."""

import contextlib

import msgspec
from msgspec import Raw

from qmsup.core.fleet.context_guard import Part, PartKind, estimate
from qmsup.listener.body import Buffer


class _Piece(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    text: str = ""


_Content = str | list[_Piece | str] | None


class _Message(msgspec.Struct, frozen=True, gc=False):
    content: _Content = None


class _Prompt(msgspec.Struct, frozen=True, gc=False):
    """Where APIs have their prompts, as undecoded JSON; empty = absent."""

    messages: Raw = Raw()
    system: Raw = Raw()
    prompt: Raw = Raw()
    instructions: Raw = Raw()
    input: Raw = Raw()


_decode_prompt = msgspec.json.Decoder(_Prompt).decode
_decode_content = msgspec.json.Decoder(_Content).decode
_decode_messages = msgspec.json.Decoder(list[_Message]).decode


def tokens_in_prompt(body: Buffer) -> int:
    """An estimate; 0 where nothing is found. What is shaped otherwise counts as nothing: its server knows better.

    Args:
        body: a JSON object that was checked.
    """
    parts: list[Part] = []
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        found = _decode_prompt(body)
        for field in (found.system, found.prompt, found.instructions, found.input):
            parts += _parts_of(field)
        for field in (found.messages, found.input):
            parts += _parts_of_messages(field)
    return estimate(parts)


def _parts_of(raw: Raw) -> list[Part]:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        if raw:
            return _parts(_decode_content(raw))
    return []


def _parts_of_messages(raw: Raw) -> list[Part]:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        if raw:
            return [part for each in _decode_messages(raw) for part in _parts(each.content)]
    return []


def _parts(content: _Content) -> list[Part]:
    if content is None:
        return []
    pieces = [content] if isinstance(content, str) else content
    return [_part(piece) for piece in pieces]


def _part(piece: _Piece | str) -> Part:
    text = piece if isinstance(piece, str) else piece.text
    kind = PartKind.IMAGE if isinstance(piece, _Piece) and "image" in piece.type else PartKind.TEXT
    return Part(kind, len(text.encode("utf-8", "surrogatepass")))
