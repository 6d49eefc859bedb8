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
    return estimate([_part(piece) for piece in _pieces_in(body)])


def text_of_prompt(body: Buffer) -> str:
    """All that counts, in one."""
    pieces = _pieces_in(body)
    return "\n".join(_text(piece) for piece in pieces if _kind(piece) is PartKind.TEXT)


def _pieces_in(body: Buffer) -> list[_Piece | str]:
    pieces: list[_Piece | str] = []
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        found = _decode_prompt(body)
        for field in (found.system, found.prompt, found.instructions, found.input):
            pieces += _pieces_of(field)
        for field in (found.messages, found.input):
            pieces += _pieces_of_messages(field)
    return pieces


def _pieces_of(raw: Raw) -> list[_Piece | str]:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        if raw:
            return _listed(_decode_content(raw))
    return []


def _pieces_of_messages(raw: Raw) -> list[_Piece | str]:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        if raw:
            return [piece for each in _decode_messages(raw) for piece in _listed(each.content)]
    return []


def _listed(content: _Content) -> list[_Piece | str]:
    if content is None:
        return []
    return [content] if isinstance(content, str) else content


def _part(piece: _Piece | str) -> Part:
    return Part(_kind(piece), len(_text(piece).encode("utf-8", "surrogatepass")))


def _kind(piece: _Piece | str) -> PartKind:
    is_image = isinstance(piece, _Piece) and "image" in piece.type
    return PartKind.IMAGE if is_image else PartKind.TEXT


def _text(piece: _Piece | str) -> str:
    return piece if isinstance(piece, str) else piece.text
