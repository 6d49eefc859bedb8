"""A model's `cmd`: split into arguments, and what they tell about the program."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from qmsup.spec import Kind

DEFAULT_SLOTS = {Kind.LLAMA_SERVER: 4, Kind.SD_SERVER: 1, Kind.GENERIC: 10}
"""Requests at once when nothing is said. llama-server without `-np` has 4 slots; sd-server renders one at a time."""

READY_CHECK = {Kind.LLAMA_SERVER: "/health", Kind.SD_SERVER: "/v1/models", Kind.GENERIC: "/health"}

_SLOTS = re.compile(r"(?:-np|--parallel)(?:=(.*))?", re.DOTALL)
_SLOTS_ENV = "LLAMA_ARG_N_PARALLEL="
_MAX_SLOTS = 100_000


def without_comments(cmd: str) -> str:
    """The command without its `#` lines: what they mention need not exist."""
    return "\n".join(line for line in cmd.split("\n") if not line.lstrip().startswith("#"))


def split(cmd: str) -> tuple[str, ...]:
    r"""The arguments. Line ends are blanks, with or without a `\` before them; quotes are a shell's.

    Raises:
        ValueError: a quote without its partner, or a backslash at the very end; the text says which.
    """
    joined = re.sub(r"\\[ \t\r]*(\n|\Z)", " ", without_comments(cmd))
    return tuple(shlex.split(joined))


def guess_kind(argv: Sequence[str]) -> Kind:
    """By the program's file name; a wrapper (docker, numactl) is generic unless `kind:` says otherwise."""
    program = PurePath(argv[0]).name if argv else ""
    if "llama-server" in program:
        return Kind.LLAMA_SERVER
    return Kind.SD_SERVER if "sd-server" in program else Kind.GENERIC


def slots(argv: Sequence[str], env: Sequence[str], kind: Kind) -> int:
    """How many requests the program serves at once: its own `-np`, the last one counts, else the kind's default."""
    for at in range(len(argv) - 1, -1, -1):
        if found := _SLOTS.fullmatch(argv[at]):
            following = argv[at + 1] if at + 1 < len(argv) else ""
            return _slots_said(following if found[1] is None else found[1], kind)
    if kind is Kind.LLAMA_SERVER:
        for entry in reversed(env):
            if entry.startswith(_SLOTS_ENV):
                return _slots_said(entry.removeprefix(_SLOTS_ENV), kind)
    return DEFAULT_SLOTS[kind]


def _slots_said(said: str, kind: Kind) -> int:
    # -1 is "choose for me" in newer builds; anything else unreadable is for the program to refuse.
    if re.fullmatch(r"[0-9]{1,6}", said) and 0 < int(said) <= _MAX_SLOTS:
        return int(said)
    return DEFAULT_SLOTS[kind]
