"""The generated models, in the real llama-server they are made for."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.support.models import llama_server, tiny_model
from tests.support.servers import answering
from tests.support.tree import ROOT

GENERATOR = ROOT / "scripts" / "make_tiny_gguf.py"
HELLO = {"messages": [{"role": "user", "content": "hello"}], "seed": 7}


@contextmanager
def _serving(model: Path, log: Path, *flags: str) -> Iterator[str]:
    command: list[str | Path] = [
        llama_server(),
        "-m",
        model,
        "-c",
        "4096",
        "-np",
        "2",
        "--threads-http",
        "4",
        *flags,
    ]
    with answering(command, log) as url:
        yield url


def test_an_answer_tells_which_model_gave_it(tmp_path: Path) -> None:
    with _serving(tiny_model("alpha"), tmp_path / "log") as url:
        answer = requests.post(f"{url}/v1/chat/completions", json=HELLO, timeout=30).json()

    choice = answer["choices"][0]
    assert re.fullmatch(r"( alpha\d+)*", choice["message"]["content"])
    assert choice["finish_reason"] == "stop"


def test_a_prompt_costs_a_token_a_character(tmp_path: Path) -> None:
    with _serving(tiny_model("alpha"), tmp_path / "log") as url:
        body = {"content": "What, alpha3 & ü?"}
        tokens = requests.post(f"{url}/tokenize", json=body, timeout=30).json()["tokens"]

    assert len(tokens) == len(body["content"].encode())


def test_a_model_that_never_ends_fills_what_it_may(tmp_path: Path) -> None:
    with _serving(tiny_model("long", eos_p=0), tmp_path / "log") as url:
        body = {**HELLO, "max_tokens": 600}
        answer = requests.post(f"{url}/v1/chat/completions", json=body, timeout=30).json()

    assert answer["usage"]["completion_tokens"] == 600
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_mixture_of_experts_loads_and_answers(tmp_path: Path) -> None:
    with _serving(tiny_model("mixed", experts=8), tmp_path / "log") as url:
        body = {"prompt": "hello", "n_predict": 4, "ignore_eos": True}
        answer = requests.post(f"{url}/completion", json=body, timeout=30).json()

    assert len(answer["content"].split(" mixed")) == 1 + 4


def test_it_embeds(tmp_path: Path) -> None:
    flags = ("--embeddings", "--pooling", "mean")
    with _serving(tiny_model("alpha"), tmp_path / "log", *flags) as url:
        body = {"input": ["one", "another"]}
        rows = requests.post(f"{url}/v1/embeddings", json=body, timeout=30).json()["data"]

    assert [len(row["embedding"]) for row in rows] == [64, 64]
    assert rows[0]["embedding"] != rows[1]["embedding"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--eos-p", "1"], "--eos-p must be"),
        (["--dim", "60", "--heads", "8"], "--dim must be"),
        (["--experts", "513"], "--experts must be"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(
    tmp_path: Path, flags: list[str], complaint: str
) -> None:
    asked: list[str | Path] = [sys.executable, GENERATOR, tmp_path / "x.gguf", *flags]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert not list(tmp_path.iterdir())
