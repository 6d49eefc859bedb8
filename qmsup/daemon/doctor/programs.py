"""The programs that the models' commands name: there, executable, of this architecture, built for this CPU."""

import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from qmsup.daemon.doctor import asking, cpu
from qmsup.daemon.doctor.asking import Heard
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.closed import closed_above
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.daemon.doctor.model_files import is_quantised
from qmsup.errors import ChildError, key_text
from qmsup.processes.command import launch
from qmsup.spec import ModelSpec

_check = Check("programs")

_MACHINES = {3: "i686", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64"}
"""ELF's number for it, and uname's word."""
_ELF = b"\x7fELF"
_VERSION = re.compile(
    r"^(?:version: .*|stable-diffusion\.cpp version .*|.*\bbuild\w*\W+\d+.*)$", re.MULTILINE
)
_NO_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")
_PORT_OF_NOBODY = 1


def look(box: Box) -> Iterator[Finding]:
    """What there is to say of each program, once for all models that run it."""
    if box.spec is None:
        return
    users: dict[tuple[str, str | None], list[ModelSpec]] = {}
    envs: dict[tuple[str, str | None], Mapping[str, str]] = {}
    for model in box.spec.models.values():
        try:
            run = launch(model, _PORT_OF_NOBODY, nonce="doctor", base=os.environ)
        except ChildError as error:
            yield _check.bad(model.id, str(error), f"correct models.{key_text(model.id)}")
            continue
        key = (run.argv[0], run.env.get("PATH"))
        users.setdefault(key, []).append(model)
        envs.setdefault(key, run.env)
    for key, models in users.items():
        yield from _of(key[0], envs[key], models)


def _of(program: str, env: Mapping[str, str], models: Sequence[ModelSpec]) -> Iterator[Finding]:
    keys = ", ".join(f"models.{key_text(model.id)}.cmd" for model in models[:3])
    path = _found(program, env)
    if path is not None and (closed := closed_above(path)):
        yield _check.bad(
            program,
            f"user {os.geteuid()} may not look into {closed}",
            f"run this as the user that qmsup runs as; if that is who you are, correct the path in {keys}",
        )
    elif path is None or not path.exists():
        where = f"there is no {program}" if "/" in program else "it is not on the PATH"
        yield _check.bad(program, where, f"install it, or correct the path in {keys}")
    elif path.is_dir() or not os.access(path, os.X_OK):
        correct = f"correct the path in {keys}"
        if path.is_dir():
            yield _check.bad(program, f"{path} is a folder", correct)
        else:
            yield _check.bad(program, f"{path} may not be executed", f"chmod +x it, or {correct}")
    elif (machine := machine_of(path)) not in {None, platform.machine()}:
        yield _check.bad(
            program,
            f"it was built for {machine}, and this is {platform.machine()}",
            f"install a build for this machine, or correct the path in {keys}",
        )
    elif missing := _missing_interpreter(path):
        yield _check.bad(
            program,
            f"its first line names {missing}, which is not there, or not for user {os.geteuid()}",
            "install that, or correct the line",
        )
    else:
        yield from _heard_of(program, path, env, models)


def _heard_of(
    program: str, path: Path, env: Mapping[str, str], models: Sequence[ModelSpec]
) -> Iterator[Finding]:
    name = PurePath(program).name
    is_llama, is_sd = "llama-server" in name, "sd-server" in name
    if not (is_llama or is_sd):
        yield _check.ok(program, f"there ({path})")
        return
    try:
        heard = asking.hear([str(path), "--version"], env)
        # It says what it was built for at a higher verbosity only, on its way to a model that is not there.
        told = asking.hear(_on_its_way(path), env) if is_llama else heard
    except OSError as error:
        why = error.strerror or str(error)
        yield _check.bad(program, f"it cannot be run: {why}", "install a build for this machine")
        return
    if (trouble := _trouble(program, heard, told)) is not None:
        yield trouble
        return
    lacking = cpu.missing(told.said, cpu.features())
    if lacking:
        yield _of_lacking(program, lacking, models)
    else:
        version = _VERSION.search(heard.said)
        yield _check.ok(
            program, f"{path}, {version[0].strip() if version else 'it says no version'}"
        )


def _on_its_way(path: Path) -> list[str]:
    nowhere = "/nonexistent/qmsup-doctor.gguf"
    return [str(path), "-m", nowhere, "--host", "127.0.0.1", "--port", "0", "-lv", "4"]


def _trouble(program: str, *runs: Heard) -> Finding | None:
    for heard in runs:
        if library := _NO_LIBRARY.search(heard.said):
            return _check.bad(
                program,
                f"it needs the library {library[1]}, which is not there",
                "install that (libcuda and libvulkan come with the GPU's driver), or a build without",
            )
        if heard.died_of_its_instructions:
            return _check.bad(
                program,
                "it was built for another kind of CPU (it ends with SIGILL)",
                "install a build for this one",
            )
        if heard.code is None:
            return _check.warn(
                program,
                "it does not end when it is asked for its version, or has no end of what it says",
                "run `--version` by hand: a GPU's driver that hangs looks like this",
            )
        if heard.ended_by is not None:
            return _check.bad(
                program,
                f"it ends with {heard.ended_by.name} when it is asked for its version",
                "run `--version` by hand; a GPU's driver that does not fit the build looks like this",
            )
    return None


def _of_lacking(program: str, lacking: Sequence[str], models: Sequence[ModelSpec]) -> Finding:
    quantised = [model.id for model in models if is_quantised(model)]
    says = f"it was built for CPUs with {', '.join(lacking)}, which this one lacks: quantised models end with SIGILL"
    do = "install a build for this CPU; until then use F16 or F32 files"
    if quantised:
        return _check.bad(program, f"{says} ({', '.join(quantised)})", do)
    return _check.warn(program, says, do)


def _found(program: str, env: Mapping[str, str]) -> Path | None:
    """The file, executable or not."""
    if "/" in program:
        return Path(program)
    folders = env.get("PATH", os.defpath)
    found = shutil.which(program, path=folders) or shutil.which(program, os.F_OK, folders)
    return None if found is None else Path(found)


def machine_of(path: Path) -> str | None:
    """The kind of machine that a program was built for; None for a script, or a kind without a name here."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if not head.startswith(_ELF) or len(head) < 20:  # noqa: PLR2004 - up to the machine's number
        return None
    order = "little" if head[5] == 1 else "big"
    return _MACHINES.get(int.from_bytes(head[18:20], order))  # type: ignore[arg-type] # one of two words


def _missing_interpreter(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None  # what may be executed need not be readable
    if not first.startswith(b"#!"):
        return None
    words = first[2:].split()
    if not words:
        return "nothing"
    name = os.fsdecode(words[0])
    interpreter = Path(name)
    return None if closed_above(interpreter) is None and interpreter.exists() else name
