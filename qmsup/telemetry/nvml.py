"""NVIDIA's cards, through the driver's own library (NVML). The only module that knows it.

The driver may be absent, go (an update, a reset, a card that fell off the bus) and come back. What fails is left out of
the sample, and after a while the library is opened anew: its handles do not outlive what they were made for.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pynvml

from qmsup.core.vram.sample import Card, Sample, Use
from qmsup.log import Log
from qmsup.telemetry.visible import visible
from qmsup.units import MiB, mib_from_bytes

_log = Log("telemetry")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_TRIES = 3
_STILL = 32 * 1024 * 1024
"""Bytes. A card's use and its processes' are two questions: where the first has changed by the time that the second is
answered, what a load took in between would be missing, or seem to be somebody else's."""

_ABSENT = frozenset((pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
"""Errors that only say that there is no such card here, as on most machines of another make."""

_NOT_TOLD = frozenset(
    (
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # an old driver
        pynvml.NVML_ERROR_NOT_SUPPORTED,  # a card, or a system, that does not tell
        pynvml.NVML_ERROR_NO_PERMISSION,  # a container
        pynvml.NVML_ERROR_INSUFFICIENT_SIZE,  # processes came faster than the list for them grew
    )
)
"""Errors that are an answer: this is not to be had, and the rest is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Device:
    """A card, or a part of one that is split (MIG), with the library's handle for it."""

    handle: object
    uuid: str
    name: str


class Nvml:
    """The library, opened by the first read. For one thread."""

    def __init__(
        self, *, wish: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Open nothing yet.

        Args:
            wish: CUDA_VISIBLE_DEVICES, which limits what is read; None = not set.
            clock: monotonic, in seconds.
        """
        self._wish = wish
        self._clock = clock
        self._is_open = False
        self._devices: tuple[_Device, ...] = ()
        self._opens_again_at: float | None = None
        self._pause = _FIRST_PAUSE
        self._told = ""

    def read(self) -> Sample:
        """What can be read now: nothing while there is no driver.

        Raises:
            Exception: what the binding makes of an answer nobody thought of. The library is opened anew for that too.
        """
        try:
            return self._read()
        except Exception:
            self._begin_anew_later()
            raise

    def _read(self) -> Sample:
        if self._opens_again_at is not None and self._clock() >= self._opens_again_at:
            self.close()
        if not self._is_open and self._opens_again_at is None:
            self._open()
        cards: list[Card] = []
        uses: list[Use] = []
        for device in self._devices:
            try:
                card, held = _read(device)
            except pynvml.NVMLError as error:
                self._fails(error, device.uuid)
                continue
            if card is not None:
                cards.append(card)
                uses += (Use(pid=pid, card=card.uuid, used=used) for pid, used in held.items())
        if self._opens_again_at is None:
            self._pause = _FIRST_PAUSE
        return Sample(cards=tuple(cards), uses=tuple(uses))

    def close(self) -> None:
        """Let go of the library; a later read opens it again."""
        self._opens_again_at = None
        self._devices = ()
        if self._is_open:
            self._is_open = False
            try:
                pynvml.nvmlShutdown()
            except pynvml.NVMLError as error:
                _log.debug("gpu.shutdown", because=str(error))

    def _open(self) -> None:
        try:
            pynvml.nvmlInit()
            self._is_open = True
            found = list(self._find())
        except pynvml.NVMLError as error:
            self._fails(error, "all")
            return
        seen = visible(self._wish, [(number, device.uuid) for number, device in found])
        self._devices = tuple(found[at][1] for at in seen)
        named = ", ".join(f"{device.name} ({device.uuid})" for device in self._devices)
        self._tell("gpu.found", cards=named or "none")

    def _find(self) -> Iterator[tuple[int, _Device]]:
        """Each card that answers, or its parts, with its number."""
        for number in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(number)
                for part in _parts(handle):
                    uuid = str(pynvml.nvmlDeviceGetUUID(part))
                    name = str(pynvml.nvmlDeviceGetName(part))
                    yield number, _Device(handle=part, uuid=uuid, name=name)
            except pynvml.NVMLError as error:
                self._fails(error, str(number))

    def _fails(self, error: pynvml.NVMLError, card: str) -> None:
        """Note that something does not answer, and try anew later: each time without success twice as late."""
        self._begin_anew_later()
        is_mismatch = error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
        hint = "the driver was updated: restart qmsup to read it" if is_mismatch else None
        if error.value in _ABSENT and not self._told:
            _log.debug("gpu.none", because=str(error))
        else:
            self._tell("gpu.unreadable", card=card, because=str(error), hint=hint)

    def _begin_anew_later(self) -> None:
        if self._opens_again_at is None:
            self._opens_again_at = self._clock() + self._pause
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)

    def _tell(self, event: str, **fields: str | None) -> None:
        """A log line, unless it was the last one too: what lasts is told once."""
        line = f"{event} {fields}"
        if line != self._told:
            self._told = line
            (_log.info if event == "gpu.found" else _log.warning)(event, **fields)


def _parts(handle: object) -> list[object]:
    """The card, or what it is split into (MIG): its memory and processes are then theirs."""
    try:
        is_split = bool(pynvml.nvmlDeviceGetMigMode(handle)[0])
    except pynvml.NVMLError as error:
        _raise_unless_not_told(error)
        is_split = False
    if not is_split:
        return [handle]
    found: list[object] = []
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number))
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_FOUND:  # a place for a part that is not there
                raise
    return found


def _read(device: _Device) -> tuple[Card | None, dict[int, MiB | None]]:
    """The card, None where its memory cannot be told, and what each process holds there.

    Raises:
        pynvml.NVMLError: it does not answer.
    """
    memory = _memory(device.handle)
    held = None
    for _ in range(_TRIES):
        before = memory
        held = _held(device.handle)
        memory = _memory(device.handle)
        if before is None or memory is None or abs(memory[1] - before[1]) < _STILL:
            break
    if memory is None:
        return None, {}
    total, used = memory
    card = Card(
        uuid=device.uuid,
        name=device.name,
        total=mib_from_bytes(total),
        used=mib_from_bytes(used),
        has_processes=held is not None,
    )
    return card, held or {}


def _memory(handle: object) -> tuple[int, int] | None:
    """Bytes that programs can have, and what of them is in use.

    The newer call tells what the driver and the firmware keep for themselves: nobody can have that. The older one
    counts it as used.
    """
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
        return int(memory.total - memory.reserved), int(memory.used)
    except pynvml.NVMLError as error:
        _raise_unless_not_told(error)
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return int(memory.total), int(memory.used)
    except pynvml.NVMLError as error:
        _raise_unless_not_told(error)
        return None


def _held(handle: object) -> dict[int, MiB | None] | None:
    """What each process holds, None for one of which it is not told; None for all when there is no list of them.

    A process that computes and draws stands in both lists, each time with all that it holds.
    """
    lists = [
        found for kind in ("Compute", "Graphics") if (found := _listed(handle, kind)) is not None
    ]
    held: dict[int, MiB | None] = {}
    for pid, used in (entry for found in lists for entry in found):
        before = held.get(pid)
        held[pid] = before if used is None else max(before or MiB(0), mib_from_bytes(used))
    return held if lists else None


def _listed(handle: object, kind: str) -> list[tuple[int, int | None]] | None:
    """Processes and their bytes; None when there is no such list."""
    for version in (3, 2):
        call = getattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v{version}")
        try:
            return [(int(process.pid), process.usedGpuMemory) for process in call(handle)]
        except pynvml.NVMLError as error:
            _raise_unless_not_told(error)
            if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                return None
    return None


def _raise_unless_not_told(error: pynvml.NVMLError) -> None:
    if error.value not in _NOT_TOLD:
        raise error
