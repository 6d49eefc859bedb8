"""What a build was made for against what a CPU has."""

from pathlib import Path

import pytest

from qmsup.daemon.doctor.cpu import features, missing

SAID = (
    "0.00.003.550 I cmn  common_param: system_info: n_threads = 2 (n_threads_batch = 2) / 2 | CPU : SSE3 = 1 |"
    " AVX = 1 | AVX_VNNI = 1 | AVX2 = 1 | AVX512 = 0 | AVX512_VBMI = 1 | AMX_INT8 = 1 | LLAMAFILE = 1 | REPACK = 1 | \n"
)
EPYC = frozenset(["fpu", "pni", "avx", "avx2", "avx512f", "avx512vbmi", "avx512_vnni"])


@pytest.mark.parametrize(
    ("said", "has", "wanted"),
    [
        (SAID, EPYC, ("AVX_VNNI",)),
        (SAID, EPYC | {"avx_vnni"}, ()),
        (SAID, frozenset(("pni", "avx")), ("AVX_VNNI", "AVX2", "AVX512_VBMI")),
        (SAID, frozenset[str](), ()),
        ("version: 1", EPYC, ()),
        (
            "system_info: n_threads = 4 / 4 | CUDA : ARCHS = 890 | CPU : NEON = 1 | DOTPROD = 1 | SVE = 1 |",
            frozenset(("asimd", "asimddp")),
            ("SVE",),
        ),
    ],
)
def test_only_what_a_build_uses_and_the_cpu_lacks_is_missing(
    said: str, has: frozenset[str], wanted: tuple[str, ...]
) -> None:
    assert missing(said, has) == wanted


def test_the_features_are_those_of_the_kernels_table(tmp_path: Path) -> None:
    table = tmp_path / "cpuinfo"
    table.write_text("processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu\n")

    assert features(table) == {"fpu", "avx2"}
    table.write_text("processor\t: 0\nFeatures\t: asimd\n")
    assert features(table) == {"asimd"}
    table.write_text("processor\t: 0\n")
    assert features(table) == frozenset()
    assert features(tmp_path / "none") == frozenset()
