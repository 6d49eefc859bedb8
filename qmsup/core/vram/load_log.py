"""What a child's load log says of the memory it took: text in, figures out; None where nothing is said.

The words before a figure changed with almost every year of llama.cpp, its tail never did: a buffer's name, its kind,
`buffer size =`. So only tails are read, whatever stands before them (time stamps, another logger, JSON).
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from qmsup.units import MiB

LARGEST = MiB(1024**3)
"""No box has so much. A difference that went below zero is printed as such a number."""
_LONGEST = 2000
"""Characters of a line that are looked at. No figure stands in a longer one, but prompts and templates do."""
_BUFFER = re.compile(
    r"(?P<by>[\w~]*):?\s+(?P<name>[A-Za-z][\w()\[\].:,]*)\s+"
    r"(?:(?P<kind>model|KV|RS|output|compute|LoRA) )?buffer size =\s*(?P<size>\d+(?:\.\d+)?) MiB"
)
_CONTEXT = ": n_ctx "
_ENCODER_ON = re.compile(r"CLIP using (\S+) backend")
_ENCODER_SIZE = re.compile(
    r"(?:load_hparams|clip_model_load\w*): model size:\s*(\d+(?:\.\d+)?) Mi?B"
)
_TABLE = "memory breakdown [MiB]"
_TABLE_ROW = re.compile(
    r"\|\s+- (?P<name>[^\s|]+)[^|]*\|\s*"
    r"(?:\d+\s*=\s*-?\d+\s*\+\s*\(\s*)?(?P<self>\d+)\s*=\s*\d+\s*\+\s*\d+\s*\+\s*\d+"
)
_ROWS = '"fit_memory_breakdown"'
_UNIT = "MiB"
_PLAN = re.compile(
    r"total params memory size = [\d.]+ ?Mi?B \(VRAM (?P<gpu>\d+(?:\.\d+)?) ?Mi?B, RAM (?P<ram>\d+(?:\.\d+)?) ?Mi?B\)"
)
_HOST_NAMES = frozenset(("Host", "BLAS", "AMX"))


class Source(StrEnum):
    """What part of a log the figures are from."""

    BUFFERS = "buffers"
    """What was allocated, buffer by buffer."""
    PROJECTION = "projection"
    """What llama-server reckoned before it read a weight."""
    PLAN = "plan"
    """sd-server's: weights only, which it reads with its first job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFigures:
    """The memory of one start.

    Attributes:
        gpu: on all cards.
        ram: in the box's memory, what is mapped from the file included.
        cards: on each card, as the program names it (`CUDA0`, `Vulkan1`); empty where a total is all that is said.
    """

    source: Source
    gpu: MiB
    ram: MiB
    cards: Mapping[str, MiB] = field(default_factory=dict)


def read(text: str) -> LoadFigures | None:
    """The figures of one start's log; None = it says nothing of memory, as it is at the usual verbosity."""
    lines = [line for line in text.splitlines() if len(line) <= _LONGEST]
    buffers = _Buffers()
    for line in lines:
        buffers.take(line)
    return buffers.figures() or _projection(lines) or _plan(lines)


class _Buffers:
    """Adds buffers up: of several models (a draft), of several contexts of each, and of the image encoder.

    A model line after one of another kind begins a load. One whose model takes nothing was a rehearsal, by which
    llama-server finds out what fits. The compute buffers of a context are reserved anew now and then: the largest
    counts, not the sum.
    """

    def __init__(self) -> None:
        self._loads: list[_Load] = []
        self._is_in_model = False
        self._context = 0
        self._encoder_on: str | None = None

    def take(self, line: str) -> None:
        """Read a line, which most likely says nothing."""
        if "buffer size" in line:
            found = _BUFFER.search(line)
            if found is not None:
                self._add(found)
        elif _CONTEXT in line:
            self._context += 1
        elif "CLIP using" in line and (found := _ENCODER_ON.search(line)):
            self._encoder_on = found[1]
        elif "model size:" in line and (found := _ENCODER_SIZE.search(line)) and self._encoder_on:
            self._load().sizes[self._encoder_on] += float(found[1])

    def figures(self) -> LoadFigures | None:
        """What all loads took; None = no buffer was named."""
        sums: dict[str, float] = defaultdict(float)
        for load in self._loads:
            if not load.is_rehearsal:
                load.add_to(sums)
        return _figures(Source.BUFFERS, sums) if sums else None

    def _add(self, found: re.Match[str]) -> None:
        kind = found["kind"] or "model"  # builds before 2025 did not name it
        name, size = found["name"], float(found["size"])
        is_model = kind == "model"
        if is_model and not self._is_in_model:
            self._loads.append(_Load())
        self._is_in_model = is_model
        load = self._load()
        if kind == "compute":
            key = (self._context, found["by"], name)
            load.reserved[key] = max(size, load.reserved.get(key, 0.0))
        else:
            load.sizes[name] += size
        if is_model:
            load.weights = (load.weights or 0.0) + size

    def _load(self) -> "_Load":
        if not self._loads:
            self._loads.append(_Load())
        return self._loads[-1]


@dataclass(slots=True)
class _Load:
    """One model's buffers.

    Attributes:
        weights: None = no line told of them.
        reserved: compute buffers, by context, by who reserved, by buffer.
    """

    weights: float | None = None
    sizes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    reserved: dict[tuple[int, str, str], float] = field(default_factory=dict)

    @property
    def is_rehearsal(self) -> bool:
        return self.weights == 0.0

    def add_to(self, sums: dict[str, float]) -> None:
        for name, size in self.sizes.items():
            sums[name] += size
        for (_, _, name), size in self.reserved.items():
            sums[name] += size


def _projection(lines: Iterable[str]) -> LoadFigures | None:
    """The last one made before the load: earlier ones are of settings that did not fit."""
    latest: dict[str, float] = {}
    for line in lines:
        if _ROWS in line:
            latest = _rows_of(line) or latest
        elif _TABLE in line:
            latest = {}
        elif found := _TABLE_ROW.search(line):
            latest[found["name"]] = float(found["self"])
    return _figures(Source.PROJECTION, latest) if latest else None


def _rows_of(line: str) -> dict[str, float]:
    """What is reckoned for each card and the host; nothing of a line that is torn, or of an unknown build."""
    try:
        data = json.loads(line[line.index("{") :])["data"]
        if data.get("unit", _UNIT) != _UNIT:
            return {}
        return {str(row["name"]): float(int(row["self"])) for row in data["rows"]}
    except (
        ArithmeticError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return {}


def _plan(lines: Iterable[str]) -> LoadFigures | None:
    found = [match for line in lines if (match := _PLAN.search(line))]
    if not found:
        return None
    gpu, ram = float(found[-1]["gpu"]), float(found[-1]["ram"])
    if not (gpu < LARGEST and ram < LARGEST):
        return None
    return LoadFigures(source=Source.PLAN, gpu=_whole(gpu), ram=_whole(ram))


def _figures(source: Source, sums: Mapping[str, float]) -> LoadFigures | None:
    """The sums by card; None where one cannot be, for the others are then none to build on either."""
    if not all(0 <= size < LARGEST for size in sums.values()):
        return None
    cards: dict[str, float] = defaultdict(float)
    ram = 0.0
    for name, size in sums.items():
        if name.startswith("RPC"):
            continue  # another machine's
        if name.startswith("CPU") or name.endswith("_Host") or name in _HOST_NAMES:
            ram += size
        elif size:
            cards[name.partition("_")[0]] += (
                size  # `CUDA0_Split`, `MTL0_Mapped` are on that card too
            )
    return LoadFigures(
        source=source,
        gpu=_whole(sum(cards.values())),
        ram=_whole(ram),
        cards={name: _whole(size) for name, size in cards.items()},
    )


def _whole(size: float) -> MiB:
    return MiB(math.ceil(size))
