"""A GPU that is a file: what the fake driver library tells, and what programs that play along claim of its memory.

    gpu = FakeGpu(folder)
    gpu.show(State(cards=(FakeCard(uuid="GPU-1", total=24576),)))
    environment[VARIABLE] = str(gpu.file)

Of the standard library alone, and a program too, which holds memory until it is ended, as a game does:

    python gpu.py FILE MIB
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

VARIABLE = "QMSUP_FAKE_NVML"
DRIVER_NOT_LOADED = 9
NOT_SUPPORTED = 3
GPU_IS_LOST = 15
_DENIED = ".denied"


class OutOfMemory(Exception):  # noqa: N818 - what the real one is called
    """The card has not so much left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCard:
    """One card; sizes in MiB.

    Attributes:
        reserved: what the driver keeps for itself.
        base: what is in use and nobody's: the desktop.
        error: what every question about it is answered with; 0 = it works.
        parts: what it is split into (MIG).
    """

    uuid: str = "GPU-1"
    name: str = "Fake 24 GB"
    total: int = 24576
    reserved: int = 0
    base: int = 0
    error: int = 0
    parts: tuple["FakeCard", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeUse:
    """What a process holds, which need not exist.

    Attributes:
        kind: `c`omputes, draws `g`raphics, or `cg`: then it stands in both lists.
    """

    pid: int
    used: int
    card: str = "GPU-1"
    kind: str = "c"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the driver tells.

    Attributes:
        init: what opening it is answered with; anything but 0: it is not there.
        hang_ms: how long each question about memory takes.
        lists: what asking for processes is answered with.
        old: 1 = it does not know the newer calls; 2 = nor any list of processes.
        lag_ms: for how long a dead process's memory stays in use.
        hidden: pids of which it does not tell how much they use.
    """

    cards: tuple[FakeCard, ...] = (FakeCard(),)
    uses: tuple[FakeUse, ...] = ()
    init: int = 0
    hang_ms: int = 0
    lists: int = 0
    old: int = 0
    lag_ms: int = 0
    hidden: tuple[int, ...] = ()

    def changed(self, told: Mapping[str, Any]) -> "State":
        """With what a JSON object names replaced."""
        fields = dict(told)
        if "cards" in fields:
            fields["cards"] = tuple(_card(card) for card in fields["cards"])
        if "uses" in fields:
            fields["uses"] = tuple(FakeUse(**use) for use in fields["uses"])
        if "hidden" in fields:
            fields["hidden"] = tuple(fields["hidden"])
        return replace(self, **fields)

    def lines(self, claims: Path) -> Iterator[str]:
        """As the fake library reads it: see nvml/state.c."""
        yield f"init {self.init}"
        yield f"hang {self.hang_ms}"
        yield f"lists {self.lists}"
        yield f"old {self.old}"
        yield f"lag {self.lag_ms}"
        yield f"claims {claims}"
        number = 0
        for card in self.cards:
            yield f"card {_line(card, int(bool(card.parts)))}"
            yield from (f"part {_line(part, number)}" for part in card.parts)
            number += 1 + len(card.parts)
        for use in self.uses:
            yield f"use {use.card} {use.pid} {use.used} {use.kind}"
        for pid in self.hidden:
            yield f"hidden {pid}"


def _card(told: Mapping[str, Any]) -> FakeCard:
    return FakeCard(**{**told, "parts": tuple(_card(part) for part in told.get("parts", ()))})


def _line(card: FakeCard, last: int) -> str:
    numbers = f"{card.total} {card.reserved} {card.base} {card.error} {last}"
    return f"{card.uuid} {numbers} {card.name}"


class FakeGpu:
    """The file, and the folder of claims beside it.

    Attributes:
        state: what was last shown.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gpu"
        self.claims = folder / "claims"
        self.claims.mkdir(parents=True, exist_ok=True)
        self.state = State()

    def show(self, state: State) -> None:
        """This is so from now on; never half of it."""
        self.state = state
        new = self.file.with_name("gpu.new")
        new.write_text("\n".join([*state.lines(self.claims), ""]))
        new.replace(self.file)

    def change(self, **fields: Any) -> None:
        """Show the same with these fields of `State` replaced."""
        self.show(replace(self.state, **fields))

    def held(self) -> dict[int, int]:
        """MiB by pid of what programs that live claim now."""
        found = {}
        for file in self.claims.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if file.name.isdigit() and _is_alive(int(file.name)):
                    found[int(file.name)] = int(file.read_text().split()[0])
        return found

    def denied(self) -> list["Denied"]:
        """Who asked for more than there was, oldest first."""
        try:
            lines = (self.claims / _DENIED).read_text().splitlines()
        except FileNotFoundError:
            return []
        told = [line.split() for line in lines]
        return [Denied(float(at), int(pid), int(mib), int(left)) for at, pid, mib, left in told]


@dataclass(frozen=True, slots=True)
class Denied:
    """A process that got no memory; `at` by the clock of the wall, `left` was there for it."""

    at: float
    pid: int
    mib: int
    left: int


def claim(file: Path, mib: int, *, card: str | None = None) -> str:
    """Take memory for this process, more and more with each call, until it ends, however it does.

    Args:
        file: the GPU's.
        mib: how much more.
        card: uuid; None = the first one's.

    Returns:
        The uuid of the card.

    Raises:
        OutOfMemory: there is not so much left on the card.
    """
    told = [line.split() for line in file.read_text().splitlines()]
    folder = next(Path(words[1]) for words in told if words[0] == "claims")
    lag = next(int(words[1]) / 1000 for words in told if words[0] == "lag")
    cards = {words[1]: words for words in told if words[0] in {"card", "part"}}
    uuid = next(iter(cards)) if card is None else card
    total, reserved, base = (int(word) for word in cards[uuid][2:5])
    shown = sum(int(words[3]) for words in told if words[0] == "use" and words[1] == uuid)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two that load at once do not both take what is left
        own = folder / str(os.getpid())
        others, before = _claimed(folder, uuid, lag)
        left = total - reserved - base - shown - others - before
        if mib > left:
            with (folder / _DENIED).open("a") as denied:
                denied.write(f"{time.time()} {os.getpid()} {mib} {max(0, left)}\n")
            message = f"allocating {mib} MiB on {uuid}: out of memory, {max(0, left)} MiB are left"
            raise OutOfMemory(message)
        new = folder / f".{os.getpid()}"
        new.write_text(f"{before + mib} {uuid}\n")
        new.replace(own)
    return uuid


def _claimed(folder: Path, uuid: str, lag: float) -> tuple[int, int]:
    """What others hold of the card, those included whose memory is not back yet, and what this process does."""
    others = own = 0
    for file in folder.glob("[!.]*"):
        with contextlib.suppress(FileNotFoundError):  # the library clears away, too
            used, card = file.read_text().split()
            if _counts(file, lag):
                mine = file.name == str(os.getpid())
                own += int(used) if mine and card == uuid else 0
                others += int(used) if not mine and card == uuid else 0
    return others, own


def _counts(file: Path, lag: float) -> bool:
    if file.name.isdigit() and not _is_alive(int(file.name)):
        if not lag:
            return False
        # As the library does, which may not be asked for a while: whoever sees it first names and dates it.
        file = file.rename(file.with_name(f"dead-{file.name}"))
        os.utime(file)
    if file.name.startswith("dead-"):
        return time.time() - file.stat().st_mtime < lag
    return file.name.isdigit()


def _is_alive(pid: int) -> bool:
    """A zombie has given its memory back."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZXx"


if __name__ == "__main__":
    claim(Path(sys.argv[1]), int(sys.argv[2]))
    print("holds it", flush=True)
    signal.pause()
