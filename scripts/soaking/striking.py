"""The hands that do to a box what the dice have thrown, and undo what lasts."""

import contextlib
import re
import signal
import time
from dataclasses import replace
from typing import assert_never

import psutil

from scripts.soaking.disk import Disk
from scripts.soaking.faults import Fault, Kind, Part, Taken
from scripts.soaking.muddle import CLEAR, Muddle
from scripts.soaking.thief import Thief
from tests.support.box import Box

_NAME = re.compile(r"--name (\w+)")


class Hands:
    """For one box, and for one thread."""

    def __init__(self, box: Box, muddle: Muddle, disk: Disk | None) -> None:
        self._box = box
        self._muddle = muddle
        self._disk = disk
        self._frozen: dict[int, psutil.Process] = {}
        self._thief: Thief | None = None
        self.overheard: list[bytes] = []
        """What came to ports that were stolen."""
        self.stolen = 0
        """So many ports were had before their child had them; often no child is started in time."""

    def told(self) -> str:
        """What came of it, for people."""
        counts = self._muddle.counts
        words = ", ".join(f"{counts[what]} {what}" for what in ("lost", "repeated", "delayed"))
        return f"messages: {words}; ports had before their child: {self.stolen}"

    def strike(self, fault: Fault, round_began: float) -> Taken | None:
        """Do it; None when there is nothing that it could be done to.

        Of parts another child is hit when the model that the fault names has none.
        """
        pid, with_it = 0, frozenset[int]()
        match fault.kind:
            case Kind.KILL | Kind.FREEZE:
                hit = self._hit(fault)
                if hit is None:
                    return None
                fault, pid, with_it = hit
            case Kind.MUDDLE:
                self._muddle.muddled = fault.muddled
            case Kind.STEAL:
                self._thief = Thief(self._scheduler_pid, shares=fault.pick % 2 == 0)
            case Kind.FILL:
                if self._disk is None:
                    return None
                self._disk.fill()
            case _:
                assert_never(fault.kind)
        at_s = time.monotonic() - round_began
        return Taken(fault=fault, at_s=at_s, pid=pid, with_it=with_it)

    def lift(self, taken: Taken) -> None:
        """It is over."""
        match taken.fault.kind:
            case Kind.KILL:
                pass
            case Kind.FREEZE:
                if (frozen := self._frozen.pop(taken.pid, None)) is not None:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        frozen.send_signal(signal.SIGCONT)
            case Kind.MUDDLE:
                self._muddle.muddled = CLEAR
            case Kind.STEAL:
                if (thief := self._thief) is not None:
                    self._thief = None
                    thief.give_back()
                    self.overheard += thief.heard
                    self.stolen += thief.stolen is not None
            case Kind.FILL:
                if self._disk is not None:
                    self._disk.empty()
            case _:
                assert_never(taken.fault.kind)

    def _hit(self, fault: Fault) -> tuple[Fault, int, frozenset[int]] | None:
        victims = self._candidates(fault)
        if not victims:
            return None
        name, victim = victims[fault.pick % len(victims)]
        freezes = fault.kind is Kind.FREEZE
        if freezes and victim.pid in self._frozen:
            return None
        is_listener = fault.part is Part.LISTENER
        try:
            workers = [worker.pid for worker in victim.children()] if is_listener else []
            victim.send_signal(signal.SIGSTOP if freezes else signal.SIGKILL)
        except psutil.NoSuchProcess:
            return None
        if freezes:
            self._frozen[victim.pid] = victim
        return replace(fault, name=name), victim.pid, frozenset(workers)

    def _candidates(self, fault: Fault) -> list[tuple[str, psutil.Process]]:
        with contextlib.suppress(psutil.Error, StopIteration):
            match fault.part:
                case Part.SCHEDULER:
                    scheduler = scheduler_of(self._box)
                    return [("", scheduler)] if scheduler else []
                case Part.WORKER:
                    workers = self._box.listener(fault.name).children()
                    return [(fault.name, worker) for worker in workers]
                case Part.LISTENER:
                    return [(fault.name, self._box.listener(fault.name))]
                case Part.CHILD:
                    children = [  # not all are the scheduler's: one that was killed left some
                        (found[1], process)
                        for process in self._box.processes()
                        if (found := _NAME.search(" ".join(process.cmdline())))
                    ]
                    return [pair for pair in children if pair[0] == fault.name] or children
                case None:
                    pass
                case _:
                    assert_never(fault.part)
        return []

    def _scheduler_pid(self) -> int | None:
        scheduler = scheduler_of(self._box)
        return scheduler.pid if scheduler else None


def scheduler_of(box: Box) -> psutil.Process | None:
    """The process that decides, if there is one just now."""
    with contextlib.suppress(psutil.Error):
        for process in box.parts():
            if "scheduler" in process.cmdline()[3:4]:
                return process
    return None
