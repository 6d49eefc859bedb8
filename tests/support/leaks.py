"""What a test can leave behind: actors, threads that keep a process alive, and processes."""

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "QMSUP_TEST_MARK"
_PATIENCE = 5.0  # seconds for what is on its way out; a test that leaves nothing never waits
_STEP = 0.01


def own_mark() -> str:
    """Stands in the environment of every process started by this one, and of theirs."""
    return f"pytest-{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is there: actors by urn, threads by identity, processes by pid."""

    actors: frozenset[str]
    threads: frozenset[threading.Thread]
    processes: frozenset[psutil.Process]

    def __bool__(self) -> bool:
        return bool(self.actors or self.threads or self.processes)

    def without(self, other: "Standing") -> "Standing":
        """What is here and was not there, nor was started by what was there."""
        fresh = self.processes - other.processes
        return Standing(
            actors=self.actors - other.actors,
            threads=self.threads - other.threads,
            processes=frozenset(p for p in fresh if not _descends(p, other.processes)),
        )

    def describe(self) -> str:
        """One line for each."""
        lines = [f"actor {urn}: stop it" for urn in self.actors]
        lines += [f"thread {thread.name}: join it" for thread in self.threads]
        lines += [f"process {_title(process)}: stop and reap it" for process in self.processes]
        return "\n".join(lines)

    def clear_away(self) -> None:
        """End what can be ended, so that the next test is judged for its own leaks."""
        if self.actors:
            sys.modules["pykka"].ActorRegistry.stop_all(block=True, timeout=_PATIENCE)
        for process in self.processes:
            with suppress(psutil.Error):
                process.kill()
                process.wait(_PATIENCE)


def look(*, thorough: bool) -> Standing:
    """What stands now; `thorough` also finds our processes' orphans (it reads all of /proc)."""
    return Standing(
        actors=_actors(),
        threads=frozenset(thread for thread in threading.enumerate() if not thread.daemon),
        processes=frozenset(_children())
        | (frozenset(marked_with(f"{MARK}={own_mark()}")) if thorough else frozenset()),
    )


def settle(before: Standing, *, thorough: bool) -> Standing:
    """What is new and stays, after waiting a while for what is on its way out."""
    deadline = time.monotonic() + _PATIENCE
    while (left := look(thorough=thorough).without(before)) and time.monotonic() < deadline:
        time.sleep(_STEP)
    return left


def _actors() -> frozenset[str]:
    pykka = sys.modules.get("pykka")  # a test without actors does not import it for this
    return (
        frozenset(ref.actor_urn for ref in pykka.ActorRegistry.get_all()) if pykka else frozenset()
    )


def _children() -> list[psutil.Process]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []  # the usual answer, and thousands of times cheaper than reading /proc
    return psutil.Process().children(recursive=True)


def marked_with(line: str) -> list[psutil.Process]:
    """The processes with this `NAME=value` in their environment, without this one.

    They may have left our tree: children get a session of their own.
    """
    wanted = line.encode()
    found: list[psutil.Process] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError, psutil.Error):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(psutil.Process(int(entry.name)))
    return found


def _descends(process: psutil.Process, ancestors: frozenset[psutil.Process]) -> bool:
    if not ancestors:
        return False
    try:
        return any(parent in ancestors for parent in process.parents())
    except psutil.Error:
        return False


def _title(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({process.status()}) {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return str(process.pid)
