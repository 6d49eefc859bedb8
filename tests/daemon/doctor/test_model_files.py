"""The files of models: missing, unreadable, not what they should be."""

from pathlib import Path

import pytest

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.model_files import is_quantised, look
from qmsup.spec import Kind
from tests.support.doctoring import box_with, graded, model
from tests.support.models import tiny_model


def test_files_that_are_there_are_counted() -> None:
    tiny = tiny_model("alpha")
    both = model("llama-server", "-m", tiny, f"--mmproj={tiny}", "--port", "${PORT}")

    [finding] = look(box_with(both))

    assert (finding.grade, finding.says[-1]) == ("ok", "2")
    assert list(look(Box())) == list(look(box_with(model("llama-server", "-hf", "x/y:Q4")))) == []


def test_a_file_that_is_not_there_is_bad() -> None:
    [finding] = look(box_with(model("llama-server", "-m", "/no/such.gguf")))

    assert (finding.grade, finding.about) == ("bad", "/no/such.gguf")
    assert "models.m.cmd" in finding.do


def test_flags_of_other_programs_may_mean_something_else() -> None:
    vllm = ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "acme/coder")
    script = ("./serve.sh", "-m", "/no/such.gguf", "-mm", "mm.gguf", "-md", "~/draft", "--vae", "x")
    by_another = model("nice", "/opt/llama-server-vulkan", "-m", "none", kind=Kind.GENERIC)

    assert list(look(box_with(model(*vllm, kind=Kind.GENERIC)))) == []
    told = look(box_with(model(*script, kind=Kind.GENERIC)))
    assert [each.about for each in told] == ["/no/such.gguf", "mm.gguf", "~/draft"]
    assert graded(look(box_with(by_another))) == [("bad", "none")]
    assert graded(look(box_with(model("./serve.sh", "-m", "none")))) == [("bad", "none")]


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("~/m.gguf", "correct -m in models.m.cmd: no shell runs that would know what ~ is"),
        ("$HOME/m.gguf", "correct -m in models.m.cmd: no shell runs that would know what $HOME is"),
        (
            "no/m.gguf",
            f"correct -m in models.m.cmd: write the full path, as it is looked for in {Path.cwd()}",
        ),
        ("/no/m.gguf", "correct -m in models.m.cmd"),
    ],
)
def test_why_a_file_is_not_found_is_told(path: str, advice: str) -> None:
    [finding] = look(box_with(model("llama-server", "-m", path)))

    assert finding.do.split(";")[0] == advice


def test_what_is_no_model_is_bad(tmp_path: Path) -> None:
    page = tmp_path / "m.gguf"
    page.write_text("<html>404</html>")
    plain = tmp_path / "m.safetensors"
    plain.write_text("{}")

    assert graded(look(box_with(model("llama-server", "-m", page)))) == [("bad", str(page))]
    assert graded(look(box_with(model("llama-server", "-m", tmp_path)))) == [("bad", str(tmp_path))]
    images = model("sd-server", "--diffusion-model", plain, kind=Kind.SD_SERVER)
    assert graded(look(box_with(images))) == [("ok", "commands")]


def test_files_in_a_container_and_names_made_at_the_start_are_not_looked_for() -> None:
    elsewhere = model("docker", "run", "-m", "/models/x.gguf")
    later = model("llama-server", "-m", "/models/${PORT}.gguf")

    assert list(look(box_with(elsewhere, later))) == []


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (("-m", "/none/chat-Q4_K_M.gguf"), True),
        (("-m", "/none/chat.iq2_xs.gguf"), True),
        (("-m", "/none/gpt-oss-20b-mxfp4.gguf"), True),
        (("-m", "/none/chat-f16.gguf"), False),
        (("-m", "/none/qwen3-30b.gguf"), False),
        (("-hf", "org/chat-GGUF:Q8_0"), True),
        (("-hf", "org/chat-GGUF"), False),
    ],
)
def test_a_file_that_does_not_say_goes_by_its_name(argv: tuple[str, ...], wanted: bool) -> None:
    assert is_quantised(model("llama-server", *argv)) is wanted
