"""A model's `cmd`: split into arguments, and what they tell about the program."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from qmsup.config.addresses import PORT
from qmsup.spec import Kind

DEFAULT_SLOTS = {Kind.LLAMA_SERVER: 4, Kind.SD_SERVER: 1, Kind.GENERIC: 10}
"""Requests at once when nothing is said. llama-server without `-np` has 4 slots; sd-server renders one at a time."""

READY_CHECK = {Kind.LLAMA_SERVER: "/health", Kind.SD_SERVER: "/v1/models", Kind.GENERIC: "/health"}

_SLOTS = re.compile(r"(?:-np|--parallel)(?:=(.*))?", re.DOTALL)
_SLOTS_ENV = "LLAMA_ARG_N_PARALLEL="
_FIT = re.compile(r"--?fit(?:=(.*))?", re.DOTALL)
_FIT_ENV = "LLAMA_ARG_FIT="
_NO = frozenset({"off", "disabled", "false", "0"})
_MAX_SLOTS = 100_000
_PORT_FLAGS = {Kind.LLAMA_SERVER: "--port", Kind.SD_SERVER: "--listen-port", Kind.GENERIC: ""}

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "ssh"})
"""They, or what ssh reaches, understand what is meant for a shell."""
_OPERATOR = re.compile(r"(\|\|?|&&?|;|<|[0-9&]?>>?(?:&[0-9])?)(?:(?<=>)[/~.\w-].*)?", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_EXPANDED = re.compile(r"~(?=/|\Z)|\$(?:HOME|PWD|USER)(?=/|\Z)")


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


def meant_for_a_shell(argv: Sequence[str]) -> str | None:
    """What only a shell would understand, and what to do; None = nothing. No value is told, as it may be a secret."""
    if not argv or PurePath(argv[0]).name in _SHELLS:
        return None
    if assigned := _ASSIGNMENT.match(argv[0]):
        return f"starts with {assigned[0]}, which is taken for the program; write it in env"
    for word in argv:
        if operator := _OPERATOR.fullmatch(word):
            return f"holds {operator[1]}, which the program is given as it is: no shell runs; wrap it in sh -c '...'"
        if named := _EXPANDED.match(word):
            return f"holds {named[0]}, which stays as it is: no shell runs; write the full path"
    return None


def guess_kind(argv: Sequence[str]) -> Kind:
    """By the program's file name; a wrapper (docker, numactl) is generic unless `kind:` says otherwise."""
    program = PurePath(argv[0]).name if argv else ""
    if "llama-server" in program:
        return Kind.LLAMA_SERVER
    return Kind.SD_SERVER if "sd-server" in program else Kind.GENERIC


def own_port(argv: Sequence[str]) -> str | None:
    """The port a server is told in its command, `${PORT}` or another; None = nothing is said, or not understood."""
    flag = _PORT_FLAGS[guess_kind(argv)]
    return _said(argv, re.compile(rf"{flag}(?:=(.*))?", re.DOTALL)) if flag else None


def gets_port(argv: Sequence[str], env: Sequence[str]) -> bool:
    """Whether `${PORT}` reaches the program: it is written, or the start adds what a known server needs."""
    is_written = any(PORT in word for word in (*argv, *env))
    return is_written or (guess_kind(argv) is not Kind.GENERIC and own_port(argv) is None)


def slots(argv: Sequence[str], env: Sequence[str], kind: Kind) -> int | None:
    """How many requests the program is told to serve at once: its last `-np`; None = nothing is said."""
    said = _said(argv, _SLOTS)
    if said is None and kind is Kind.LLAMA_SERVER:
        said = next(
            (e.removeprefix(_SLOTS_ENV) for e in reversed(env) if e.startswith(_SLOTS_ENV)), None
        )
    # -1 is "choose for me" in newer builds; anything else unreadable is for the program to refuse.
    if said is not None and re.fullmatch(r"[0-9]{1,6}", said) and 0 < int(said) <= _MAX_SLOTS:
        return int(said)
    return None


def fits_itself(argv: Sequence[str], env: Sequence[str], kind: Kind) -> bool:
    """Whether the program sizes itself by the memory that it finds free: llama-server does unless told not to."""
    if kind is Kind.SD_SERVER:
        return "--auto-fit" in argv
    if kind is not Kind.LLAMA_SERVER:
        return False
    said = _said(argv, _FIT)
    if said is None:
        said = next((e.removeprefix(_FIT_ENV) for e in reversed(env) if e.startswith(_FIT_ENV)), "")
    return said.lower() not in _NO


def _said(argv: Sequence[str], flag: re.Pattern[str]) -> str | None:
    """What stands after the last such flag: `--flag value`, or `--flag=value` (its group 1)."""
    for at in range(len(argv) - 1, -1, -1):
        if found := flag.fullmatch(argv[at]):
            following = argv[at + 1] if at + 1 < len(argv) else ""
            return following if found[1] is None else str(found[1])
    return None
