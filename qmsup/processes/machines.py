"""For which kind of machine a program file is built: what to say when the kernel does not know how to run it."""

import struct

_MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<4sBB12xH")
_BITS = {1: "32-bit", 2: "64-bit"}
_MACHINES = {
    3: "x86",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC",
    22: "s390",
    40: "ARM",
    62: "x86_64",
    183: "aarch64",
    243: "RISC-V",
    258: "LoongArch",
}


def machine_of(program: str) -> str:
    """Such as `64-bit aarch64`; "" when it is no program that Linux runs."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - a path as it was found, perhaps a strange one
            head = file.read(_HEADER.size)
    except OSError:
        return ""
    if len(head) < _HEADER.size:
        return ""
    magic, bits, order, machine = _HEADER.unpack(head)
    if magic != _MAGIC:
        return ""
    if order == 2:  # noqa: PLR2004 - written the other way round
        machine = int.from_bytes(machine.to_bytes(2, "little"), "big")
    return f"{_BITS.get(bits, 'unknown')} {_MACHINES.get(machine, f'machine {machine}')}"
