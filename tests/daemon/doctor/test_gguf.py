"""Heads of GGUF files: real ones, made ones, and anything at all."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmsup.daemon.doctor.gguf import Head, head_of
from tests.support.models import tiny_model


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


NAMES = entry(b"tokens", 9, struct.pack("<IQ", 8, 2) + text(b"a") + text(b"b"))
NUMBERS = entry(b"scores", 9, struct.pack("<IQ", 6, 3) + bytes(12))
NESTED = entry(b"nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 2) + bytes(8))
NAME = entry(b"general.name", 8, text(b"tiny"))


def file_type(number: int) -> bytes:
    return entry(b"general.file_type", 4, struct.pack("<I", number))


def gguf(*entries: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


@pytest.mark.parametrize(
    ("data", "head"),
    [
        (gguf(NAME, NAMES, NUMBERS, NESTED, file_type(15)), Head(is_gguf=True, is_quantised=True)),
        (gguf(file_type(1)), Head(is_gguf=True, is_quantised=False)),
        (gguf(NAME), Head(is_gguf=True)),
        (gguf(NAME, file_type(15))[:-8], Head(is_gguf=True)),
        (gguf(entry(b"odd", 99, b"")), Head(is_gguf=True)),
        (b"GGUF", Head(is_gguf=True)),
        (b"version https://git-lfs.github.com/spec/v1", Head(is_gguf=False)),
        (b"", Head(is_gguf=False)),
    ],
)
def test_what_the_beginning_says(tmp_path: Path, data: bytes, head: Head) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(data)

    assert head_of(file) == head


def test_a_real_file_is_one(tmp_path: Path) -> None:
    assert head_of(tiny_model("alpha")).is_gguf


def test_arrays_without_end_are_given_up(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf(entry(b"deep", 9, struct.pack("<IQ", 9, 1) * 50_000)))

    assert head_of(file) == Head(is_gguf=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_whatever_follows_the_magic_can_be_read(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + data)

    assert head_of(file).is_gguf
