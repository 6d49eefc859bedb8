"""Request bodies that come compressed, decompressed in bounded steps: whoever consumes them stops a bomb in time."""

import sys
import zlib
from collections.abc import Iterator
from typing import Protocol

from qmsup.errors import Code, Refusal, RequestError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP = 256 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS
_ZSTD_WINDOW = 23
"""8 MiB, as RFC 9659 has it for HTTP: what a frame asks for beyond it would be memory for one client's sake."""


class _Engine(Protocol):
    """One of the decompressors.

    Attributes:
        eof: the compressed data is at its end; what comes now is too much.
    """

    eof: bool

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """What a piece decompresses to, up to the end."""
        ...

    @property
    def has_more(self) -> bool:
        """Something came after the end."""
        ...


def decoded(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    """A body's pieces without their Content-Encoding.

    Raises:
        RequestError: the encoding is not known; or, while they are consumed, they are broken or incomplete.
    """
    match coding.strip().lower():
        case "" | "identity":
            return pieces
        case "gzip" | "x-gzip" | "deflate" | "zstd" as known:
            return _decompressed(pieces, known)
        case other:
            raise RequestError(
                Refusal(
                    code=Code.UNSUPPORTED_ENCODING,
                    message=f"cannot decode a request body in Content-Encoding {other[:40]!r}: "
                    "send it plain, or as gzip, deflate or zstd",
                )
            )


def _decompressed(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    engine: _Engine | None = None
    for piece in pieces:
        if engine is None:
            engine = _engine_for(coding, piece)
        is_over = engine.eof
        try:
            yield from engine.feed(piece)
        except (zlib.error, zstd.ZstdError) as error:
            raise _bad("the request body is not what its Content-Encoding says") from error
        if is_over or engine.has_more:
            raise _bad("the compressed request body has bytes after its end")
    if engine is not None and not engine.eof:
        raise _bad("the compressed request body ends early")


def _engine_for(coding: str, first: bytes) -> _Engine:
    if coding == "zstd":
        return _Zstd()
    # "deflate" means zlib, but some clients send it bare; zlib's first byte says 8 in its low half.
    is_bare = coding == "deflate" and first[0] & 0x0F != zlib.DEFLATED
    return _Zlib(_RAW_DEFLATE if is_bare else _GZIP_OR_ZLIB)


class _Zlib:
    def __init__(self, window: int) -> None:
        self._engine = zlib.decompressobj(window)
        self.eof = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        engine = self._engine
        out = bytes(_STEP)
        while not engine.eof and (
            piece or len(out) == _STEP
        ):  # a full step may leave output inside
            out = engine.decompress(piece, _STEP)
            piece = engine.unconsumed_tail
            if out:
                yield out
        self.eof = engine.eof

    @property
    def has_more(self) -> bool:
        return bool(self._engine.unused_data)


class _Zstd:
    def __init__(self) -> None:
        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
        self._engine = zstd.ZstdDecompressor(options=options)
        self.eof = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        engine = self._engine
        while not engine.eof and (piece or not engine.needs_input):
            if out := engine.decompress(piece, _STEP):
                yield out
            piece = b""
        self.eof = engine.eof

    @property
    def has_more(self) -> bool:
        return self.eof and bool(self._engine.unused_data)


def _bad(message: str) -> RequestError:
    return RequestError(Refusal(code=Code.BAD_REQUEST, message=message))
