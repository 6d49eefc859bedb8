"""How a child is started: leader of its own session, deaf to our terminal, writing its own log."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath

from qmsup import open_files
from qmsup.errors import ChildError, key_text
from qmsup.ids import Incarnation, ModelId
from qmsup.log import Log
from qmsup.processes import output, records
from qmsup.processes.child import Child
from qmsup.processes.command import Launch
from qmsup.processes.machines import machine_of
from qmsup.processes.marks import MARK_VARIABLE, mark_of
from qmsup.processes.procfs import read_stat
from qmsup.processes.records import Record

_log = Log("processes")


def spawn(launch: Launch, *, model: ModelId, incarnation: Incarnation) -> Child:
    """Start the program. It is not ready yet, only running; on record it has no pid yet.

    Raises:
        ChildError: there is no such program, it may not be run, or its log or record cannot be written.
    """
    record = _record(launch, model, incarnation)
    log, descriptor = output.open_log(model)
    try:
        program = PurePath(launch.argv[0]).name
        log_start = output.mark_start(
            descriptor, program=program, port=launch.port, incarnation=incarnation
        )
        record = replace(record, log_start=log_start)
        _keep(record)
        process = _start(launch, descriptor, record)
    except ChildError:
        records.erase(record)
        raise
    finally:
        os.close(descriptor)
    return _child(process, record, log, log_start)


def _record(launch: Launch, model: ModelId, incarnation: Incarnation) -> Record:
    record = records.new_record(
        model=model, incarnation=incarnation, nonce=launch.nonce, port=launch.port
    )
    return replace(record, host=launch.host, command=launch.command, est_vram=int(launch.est_vram))


def _keep(record: Record) -> None:
    try:
        records.write(record)
    except ChildError as error:
        if (
            not isinstance(error.__cause__, OSError)
            or error.__cause__.errno not in output.DISK_FULL
        ):
            raise
        hint = "make room: until then this child is known by what stands in its environment alone"
        _log.warning("child.unrecorded", model=record.model, error=str(error), hint=hint)


def _child(process: subprocess.Popen[bytes], record: Record, log: Path, log_start: int) -> Child:
    try:
        stat = read_stat(process.pid)  # a zombie at the least, as nobody else waits for it
        pidfd = os.pidfd_open(process.pid)
    except OSError as error:
        process.kill()
        process.wait()
        records.erase(record)
        message = f"the child cannot be watched: {error.strerror}; {open_files.MORE}"
        raise ChildError(message) from error
    record = replace(record, pid=process.pid, start_ticks=stat.start_ticks if stat else 0)
    return Child(record=record, pidfd=pidfd, log=log, log_start=log_start, process=process)


def _start(launch: Launch, log: int, record: Record) -> subprocess.Popen[bytes]:
    try:
        with _no_signal_blocked():
            process = subprocess.Popen(
                launch.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**launch.env, MARK_VARIABLE: mark_of(record)},
                start_new_session=True,
            )
        with contextlib.suppress(OSError):  # it has ended, or changed its user
            open_files.hand_down(process.pid)
    except (OSError, ValueError) as error:
        if open_files.is_used_up(error):
            message = f"{launch.argv[0]} could not be started ({error}): {open_files.MORE}"
            raise ChildError(message) from error
        raise ChildError(_why(launch, error, ModelId(record.model))) from error
    return process


@contextmanager
def _no_signal_blocked() -> Iterator[None]:
    """A child inherits what its parent's thread blocks, and one that never hears TERM has to be killed."""
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _why(launch: Launch, error: OSError | ValueError, model: ModelId) -> str:
    program, key = launch.argv[0], f"models.{key_text(model)}.cmd"
    found = shutil.which(program, path=launch.env.get("PATH"))
    match error:
        case FileNotFoundError() if found is None and "/" in program:
            return f"there is no program {program}: correct the path in {key}, or install it"
        case FileNotFoundError() if found is None:
            return f"the program {program} is not on the PATH: give its full path in {key}, or install it"
        case FileNotFoundError():
            return f"{found} cannot be run: the interpreter that its first line names is missing"
        case PermissionError():
            return f"{program} may not be run: chmod +x it, or correct the path in {key}"
        case OSError(errno=errno.ENOEXEC):
            what = _what_is(found or program)
            return f"{program} could not be started (Exec format error): it {what}; correct {key}"
        case _:
            words = getattr(error, "strerror", None) or str(error)
            return f"{program} could not be started ({words}): check {key} and models.{key_text(model)}.env"


def _what_is(program: str) -> str:
    kind = machine_of(program)
    if kind:
        return f"is built for {kind}, and this machine is {os.uname().machine}"
    return "is no program, nor a script that begins with #!"
