"""stable-diffusion.cpp's sd-server."""

from collections.abc import Sequence
from pathlib import PurePath

from qmsup.processes.backends import generic
from qmsup.processes.backends.backend import Backend, Meaning, is_silent_about
from qmsup.processes.child import Exit

_NAME = "sd-server"


def _added_arguments(
    argv: Sequence[str], _env: Sequence[str], port: int, _slots: int
) -> tuple[str, ...]:
    if _NAME not in PurePath(argv[0]).name:
        return ()
    added: list[str] = []
    if is_silent_about(argv, "--listen-ip"):
        added += ["--listen-ip", "127.0.0.1"]
    if is_silent_about(argv, "--listen-port"):
        added += ["--listen-port", str(port)]
    return tuple(added)


def _meaning(ended: Exit, last_lines: str) -> Meaning:
    if ended.code == 0:  # what a bind that fails looks like; a shared port does not fail at all
        return Meaning(
            hint="it could not listen on its address, or was told to end by somebody else"
        )
    if "new_sd_ctx_t failed" in last_lines or "version from file failed" in last_lines:
        return Meaning(hint="its model could not be loaded: check the files in its command")
    return generic.meaning(ended, last_lines)


SD_SERVER = Backend(added_arguments=_added_arguments, meaning=_meaning, silent_looks=6)
