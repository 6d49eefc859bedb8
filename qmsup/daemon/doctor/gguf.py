"""The head of a GGUF file: whether it is one, and how its weights are written."""

import struct
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"GGUF"
_HEAD_BYTES = 1024 * 1024
"""More than stands before the vocabulary; what comes after it is not looked for."""
_UNQUANTISED = frozenset((0, 1, 32))
"""File types with no quantised weights (`llama_ftype`): F32, F16, BF16."""
_FILE_TYPE = b"general.file_type"
_STRING, _ARRAY, _UINT32 = 8, 9, 4
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its type's number; strings and arrays tell their own."""
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the beginning of a file says.

    Attributes:
        is_gguf: it begins as one.
        is_quantised: None = it does not say.
    """

    is_gguf: bool
    is_quantised: bool | None = None


def head_of(path: Path) -> Head:
    """Read the beginning.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(_HEAD_BYTES)
    if not data.startswith(MAGIC):
        return Head(is_gguf=False)
    try:
        kind = _file_type(data)
    except (struct.error, KeyError, OverflowError, RecursionError):  # torn, or none at all
        kind = None
    return Head(is_gguf=True, is_quantised=None if kind is None else kind not in _UNQUANTISED)


def _file_type(data: bytes) -> int | None:
    [count] = _U64.unpack_from(data, 16)
    at = 24
    for _ in range(count):
        [length] = _U64.unpack_from(data, at)
        key = data[at + 8 : at + 8 + length]
        at += 8 + length
        [kind] = _U32.unpack_from(data, at)
        at += 4
        if key == _FILE_TYPE and kind == _UINT32:
            return int(_U32.unpack_from(data, at)[0])
        at = _after(data, at, kind)
    return None


def _after(data: bytes, at: int, kind: int) -> int:
    """Where the value at this place ends."""
    if kind == _STRING:
        return at + 8 + int(_U64.unpack_from(data, at)[0])
    if kind != _ARRAY:
        return at + _SIZES[kind]
    [of] = _U32.unpack_from(data, at)
    [count] = _U64.unpack_from(data, at + 4)
    at += 12
    if of not in {_STRING, _ARRAY}:
        return at + int(count) * _SIZES[of]
    for _ in range(count):
        at = _after(data, at, of)
    return at
