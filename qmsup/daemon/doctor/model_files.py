"""The files that the models' commands name: there, readable, and what they should be."""

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.closed import closed_above
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.daemon.doctor.gguf import head_of
from qmsup.errors import key_text
from qmsup.processes.command import works_elsewhere
from qmsup.spec import Kind, ModelSpec

_check = Check("model files")

_MODEL = ("-m", "--model")
_FILES = frozenset(
    (
        *_MODEL,
        *("-mm", "--mmproj", "-md", "--model-draft", "--lora", "--chat-template-file"),
        *(
            "--diffusion-model",
            "--vae",
            "--tae",
            "--taesd",
            "--clip_l",
            "--clip_g",
            "--clip_vision",
        ),
        *("--t5xxl", "--llm", "--llm_vision", "--control-net", "--upscale-model"),
    )
)
_QUANTISED_NAME = re.compile(r"(?i)(?:^|[-._])(?:i?q[1-8]|tq[12]|mxfp4|nvfp4)(?:[-_.]|$)")
_SUFFIX = ".gguf"
_KNOWN = ("llama-server", "sd-server")
"""Whose flags mean what they do above; other programs may have their own."""


def look(box: Box) -> Iterator[Finding]:
    """A finding for each file that is not as it should be, and one for all that are."""
    if box.spec is None:
        return
    good = 0
    for model in box.spec.models.values():
        for flag, path in _named_by(model):
            trouble = _trouble(model, flag, path)
            if trouble is None:
                good += 1
            else:
                yield trouble
    if good:
        yield _check.ok("commands", f"files that are there and can be read: {good}")


def is_quantised(model: ModelSpec) -> bool:
    """Whether the model's weights are; by the name of its file where that does not say."""
    for flag, path in _named_by(model):
        if flag in _MODEL:
            try:
                said = head_of(path).is_quantised
            except OSError:
                said = None
            return bool(_QUANTISED_NAME.search(path.stem)) if said is None else said
    words = " ".join(model.argv)
    return bool(_QUANTISED_NAME.search(words.replace(":", "-").replace(" ", "-")))


def _trouble(model: ModelSpec, flag: str, path: Path) -> Finding | None:
    correct = f"correct {flag} in models.{key_text(model.id)}.cmd"
    if closed := closed_above(path):
        return _check.bad(
            str(path),
            f"{model.id} wants it, and user {os.geteuid()} may not look into {closed}",
            "run this as the user that qmsup runs as; if that is who you are, chmod +x the folder",
        )
    if not path.exists():
        says = f"{model.id} wants it, and it is not there"
        return _check.bad(str(path), says, f"{correct}{_why_not_found(path)}")
    if path.is_dir():
        return _check.bad(str(path), f"{model.id} wants it, and it is a folder", correct)
    if not os.access(path, os.R_OK):
        return _check.bad(
            str(path),
            f"{model.id} wants it, and it may not be read by user {os.getuid()}",
            f"chmod it, or {correct}",
        )
    is_llama = model.kind is Kind.LLAMA_SERVER and flag in _MODEL
    if (is_llama or path.suffix == _SUFFIX) and not head_of(path).is_gguf:
        return _check.bad(
            str(path),
            f"{model.id} wants it, and it is no GGUF file ({path.stat().st_size} bytes)",
            "download it again (a pointer of Git LFS and an error page look like this)",
        )
    return None


def _why_not_found(path: Path) -> str:
    if str(path).startswith(("~", "$")):
        return f": no shell runs that would know what {path.parts[0]} is; write the full path"
    return (
        "" if path.is_absolute() else f": write the full path, as it is looked for in {Path.cwd()}"
    )


def _named_by(model: ModelSpec) -> Iterator[tuple[str, Path]]:
    """Flags that name a file, and that file."""
    if works_elsewhere(model):
        return  # in a container, or on another machine
    is_wrapped = any(name in word for word in model.argv for name in _KNOWN)
    is_known = model.kind is not Kind.GENERIC or is_wrapped
    for word, following in pairwise((*model.argv, "")):
        flag, is_joined, value = word.partition("=")
        name = value if is_joined else following
        if flag in _FILES and name and "${" not in name and (is_known or _is_a_file(name)):
            yield flag, Path(name)


def _is_a_file(name: str) -> bool:
    """Whether it can be nothing else; to Python -m is a module, and to vLLM --model a name."""
    return name.startswith(("/", "~")) or name.endswith(_SUFFIX)
