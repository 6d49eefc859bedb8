"""What a build of llama.cpp was made for, against what this CPU has.

A build says so itself, in the line that begins with `system_info`. Where the two differ it may still run: an
instruction is met only by what uses it, such as the kernels for quantised weights, and then it ends with SIGILL.
"""

import re
from pathlib import Path

_LINE = re.compile(r"system_info:.*?\| (?:CPU|[\w ]+) : (?P<features>.+)")
_HAS = re.compile(r"(\w+) = 1\b")
_NAMES = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX_VNNI": "avx_vnni",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512_vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
    "NEON": "asimd",
    "DOTPROD": "asimddp",
    "MATMUL_INT8": "i8mm",
    "SVE": "sve",
}
"""Features as llama.cpp names them, and as the kernel does."""
_ALSO = {"avx512_vbmi": "avx512vbmi"}
"""The kernel's other spelling."""
_CHECKED_BY_ITSELF = frozenset(("AMX_INT8",))
"""llama.cpp asks the kernel for these tiles before it uses them."""


def missing(said: str, has: frozenset[str]) -> tuple[str, ...]:
    """The features a build was made for and this CPU lacks, in the build's words.

    Args:
        said: what it printed.
        has: the CPU's features as the kernel names them; empty = nobody knows, and none is missing.
    """
    line = _LINE.search(said)
    if line is None or not has:
        return ()
    built_for = [name for name in _HAS.findall(line["features"]) if name in _NAMES]
    return tuple(
        name
        for name in built_for
        if name not in _CHECKED_BY_ITSELF and not _is_in(_NAMES[name], has)
    )


def features(table: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What this CPU has, as the kernel names it; empty where that is not told."""
    try:
        text = table.read_text(errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return frozenset()


def _is_in(name: str, has: frozenset[str]) -> bool:
    return name in has or _ALSO.get(name, name) in has
