"""llama.cpp's llama-server."""

from collections.abc import Sequence
from pathlib import PurePath

from qmsup.processes.backends import generic
from qmsup.processes.backends.backend import Backend, Meaning, is_silent_about
from qmsup.processes.child import Exit

_NAME = "llama-server"
_SPARE_THREADS = 8
"""HTTP threads beyond the slots: `/health`, `/props` and requests that wait upstream each hold one."""
_FEWEST_THREADS = 16
_NOT_LOADED = Meaning(
    hint="its model could not be loaded: check the file after -m (there? complete? an architecture"
    " that this build knows?)"
)
_MAY_BE_SILENT = Meaning(
    hint="its last lines do not say why, and may be missing (it can end before they are written):"
    " start it again, or run its command by hand"
)
_SIGNS = (
    ("couldn't bind", generic.port_taken()),
    (
        "out of memory",
        Meaning(
            hint="the GPU has too little memory left: lower -c or -ngl, or set estVramGB so that others make room"
        ),
    ),
    ("model loading error", _NOT_LOADED),
    ("failed to load model", _NOT_LOADED),
    (
        "invalid argument",
        Meaning(
            hint="it does not know an argument; they differ between builds: compare with its --help"
        ),
    ),
)
"""The first that is found counts. On a busy machine every second end by itself lacks the very last line, one in some
hundred all of the last ten: another thread writes them, and it ends with the process."""


def _added_arguments(
    argv: Sequence[str], env: Sequence[str], port: int, slots: int
) -> tuple[str, ...]:
    # Behind a wrapper (a script, docker, nice) nobody knows where arguments would have to go.
    if _NAME not in PurePath(argv[0]).name:
        return ()
    added: list[str] = []
    said = {entry.partition("=")[0] for entry in env}  # an argument would win over it
    if is_silent_about(argv, "--host") and "LLAMA_ARG_HOST" not in said:
        added += ["--host", "127.0.0.1"]
    if is_silent_about(argv, "--port"):
        added += ["--port", str(port)]
    if is_silent_about(argv, "--threads-http") and "LLAMA_ARG_THREADS_HTTP" not in said:
        added += ["--threads-http", str(max(_FEWEST_THREADS, slots + _SPARE_THREADS))]
    return tuple(added)


def _meaning(ended: Exit, last_lines: str) -> Meaning:
    for sign, meaning in _SIGNS:
        if ended.signal is None and sign in last_lines:
            return meaning
    known = generic.meaning(ended, last_lines)
    return _MAY_BE_SILENT if ended.code == 1 and not known.hint else known


LLAMA_SERVER = Backend(
    added_arguments=_added_arguments,
    meaning=_meaning,
    tells_slots=True,
    tells_progress=True,
    repeats_term=True,
    silent_looks=6,
)
