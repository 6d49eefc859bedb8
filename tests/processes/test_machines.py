import os
import sys
from pathlib import Path

import pytest

from qmsup.processes.machines import machine_of


def elf(bits: int, order: int, machine: bytes) -> bytes:
    return b"\x7fELF" + bytes([bits, order]) + bytes(12) + machine + bytes(100)


def test_this_python_is_for_this_machine() -> None:
    assert machine_of(sys.executable) == f"64-bit {os.uname().machine}"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (elf(2, 1, b"\xb7\0"), "64-bit aarch64"),
        (elf(1, 2, b"\0\x08"), "32-bit MIPS"),
        (elf(9, 1, b"\xff\xff"), "unknown machine 65535"),
        (b"#!/bin/sh\n" * 9, ""),
        (b"\x7fELF", ""),
    ],
)
def test_programs_tell_what_they_are_for(tmp_path: Path, content: bytes, kind: str) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)

    assert machine_of(str(program)) == kind


def test_what_is_not_there_tells_nothing(tmp_path: Path) -> None:
    assert not machine_of(str(tmp_path / "none"))
