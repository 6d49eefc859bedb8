"""Programs that are missing, broken, foreign, or built for another CPU; and the real one."""

import platform
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.daemon.doctor import asking, cpu
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Finding
from qmsup.daemon.doctor.programs import look, machine_of
from qmsup.units import Seconds
from tests.support.doctoring import box_with, graded, model, script
from tests.support.models import llama_server, tiny_model
from tests.support.users import as_nobody


def finding_of(*argv: str | Path) -> Finding:
    [finding] = look(box_with(model(*argv)))
    return finding


def elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine) + bytes(44)


def test_one_that_is_not_there_is_bad(tmp_path: Path) -> None:
    by_path = finding_of(tmp_path / "llama-server", "-m", "x")
    by_name = finding_of("no-such-llama-server")

    assert (by_path.grade, by_name.grade) == ("bad", "bad")
    assert "not on the PATH" in by_name.says
    assert "models.m.cmd" in by_name.do
    assert list(look(Box())) == []


def test_a_path_of_the_models_own_environment_counts(tmp_path: Path) -> None:
    script(tmp_path / "server", "#!/bin/sh\n")
    with_path = replace(model("server"), env=(f"PATH={tmp_path}",))

    assert graded(look(box_with(with_path, model("server", name="other")))) == [
        ("ok", "server"),
        ("bad", "server"),
    ]


def test_one_that_may_not_be_executed_is_bad(tmp_path: Path) -> None:
    plain = script(tmp_path / "server", "#!/bin/sh\n", mode=0o644)

    for argv in (plain, tmp_path):
        assert finding_of(argv).grade == "bad"
    on_path = replace(model("server"), env=(f"PATH={tmp_path}",))
    [finding] = look(box_with(on_path))
    assert "may not be executed" in finding.says


def test_one_for_another_machine_is_bad(tmp_path: Path) -> None:
    other = 183 if platform.machine() == "x86_64" else 62
    program = tmp_path / "server"
    program.write_bytes(elf(other))
    program.chmod(0o755)

    finding = finding_of(program)

    assert (finding.grade, "was built for" in finding.says) == ("bad", True)
    assert machine_of(tmp_path / "none") is None
    assert machine_of(Path("/bin/sh").resolve()) == platform.machine()
    program.write_bytes(elf(62)[:12])
    assert machine_of(program) is None


def test_a_script_whose_interpreter_is_missing_is_bad(tmp_path: Path) -> None:
    finding = finding_of(script(tmp_path / "server", "#!/no/such/python\n"))

    assert (finding.grade, "/no/such/python" in finding.says) == ("bad", True)
    assert finding_of(script(tmp_path / "empty", "#!\n")).grade == "bad"


def test_a_program_of_which_nothing_is_known_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "was-run"

    assert finding_of(script(tmp_path / "server", f"#!/bin/sh\ntouch {mark}\n")).grade == "ok"

    assert not mark.exists()


SAID = {
    "another kind of CPU": ("kill -ILL $$", "bad"),
    "the library libcuda.so.1": (
        "echo 'llama-server: error while loading shared libraries: libcuda.so.1: cannot open'; exit 127",
        "bad",
    ),
    "version: 4615 (bfcce4d6)": ("echo 'version: 4615 (bfcce4d6)'", "ok"),
    "no version": ("exit 1", "ok"),
    "does not end": ("sleep 60", "warn"),
    "no end of what it says": ("yes", "warn"),
    "ends with SIGSEGV": ("kill -SEGV $$", "bad"),
}


@pytest.mark.parametrize("says", SAID)
def test_what_one_says_of_itself_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    monkeypatch.setattr(asking, "_WITHIN", Seconds(0.5 if says == "does not end" else 10.0))
    does, grade = SAID[says]

    for name in ("llama-server", "sd-server"):
        finding = finding_of(script(tmp_path / name, f"#!/bin/sh\n{does}\n"))

        assert (finding.grade, says in finding.says) == (grade, True)


def test_one_that_cannot_be_run_at_all_is_bad(tmp_path: Path) -> None:
    broken = tmp_path / "llama-server"
    broken.write_bytes(elf(62 if platform.machine() == "x86_64" else 183))
    broken.chmod(0o755)

    assert finding_of(broken).grade == "bad"


def test_a_build_for_another_cpu_is_bad_only_where_its_models_are_quantised(tmp_path: Path) -> None:
    line = "system_info: n_threads = 2 / 2 | CPU : AVX_VNNI = 1 | SVE = 1 | "  # no machine has both
    program = script(tmp_path / "llama-server", f"#!/bin/sh\necho '{line}'\n")
    plain = model(program, "-m", "/none/f16.gguf", name="plain")
    quantised = model(program, "-m", "/none/q4_0.gguf", name="small")

    [one] = look(box_with(plain))
    [both] = look(box_with(plain, quantised))

    assert (one.grade, both.grade) == ("warn", "bad")
    assert "(small)" in both.says
    assert "SIGILL" in both.says


def test_the_real_llama_server_tells_what_it_was_built_for() -> None:
    finding = finding_of(llama_server(), "-m", tiny_model("alpha"))

    is_served = "avx_vnni" in cpu.features()
    assert finding.grade == ("ok" if is_served else "warn")
    assert ("version" if is_served else "AVX_VNNI") in finding.says


def test_a_model_that_cannot_be_spelled_out_is_bad() -> None:
    assert graded(look(box_with(model()))) == [("bad", "m")]


def test_what_may_be_executed_and_not_read_is_well(places: Path) -> None:
    places.chmod(0o755)
    program = script(places / "server", "#!/bin/sh\n", mode=0o711)
    with as_nobody():
        assert graded(look(box_with(model(program)))) == [("ok", str(program))]
