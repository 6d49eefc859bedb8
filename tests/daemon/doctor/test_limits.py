"""Limits, lowered for real while a test looks."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Finding
from qmsup.daemon.doctor.limits import look
from tests.support.doctoring import box_with, model


@contextmanager
def limited(what: int, soft: int) -> Iterator[None]:
    before = resource.getrlimit(what)
    resource.setrlimit(what, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


def found(about: str, box: Box | None = None) -> Finding | None:
    return next((finding for finding in look(box or Box()) if finding.about == about), None)


@pytest.mark.parametrize(("files", "grade"), [(200, "bad"), (1024, "warn"), (8192, "ok")])
def test_too_few_open_files_are_told(files: int, grade: str) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < files:
        pytest.skip("the hard limit is lower here")
    with limited(resource.RLIMIT_NOFILE, files):
        finding = found("open files")

    assert finding is not None
    assert finding.grade == grade
    assert str(files) in finding.says
    assert ("ulimit -n" in finding.do) is (grade != "ok")


@pytest.mark.parametrize(
    ("what", "size", "about"),
    [
        (resource.RLIMIT_AS, 1 << 45, "address space"),
        (resource.RLIMIT_FSIZE, 1 << 40, "file size"),
    ],
)
def test_a_limited_size_is_told(what: int, size: int, about: str) -> None:
    with limited(what, size):
        finding = found(about)

    assert finding is not None
    assert (finding.grade, f"{size >> 20} MiB" in finding.says) == ("warn", True)


def test_locked_memory_matters_to_models_that_lock_theirs() -> None:
    with limited(resource.RLIMIT_MEMLOCK, 4096):
        assert found("locked memory", box_with(model("llama-server", "-m", "x"))) is None
        finding = found("locked memory", box_with(model("llama-server", "--mlock")))

    assert finding is not None
    assert (finding.grade, "m want" in finding.says) == ("warn", True)


def test_a_kernel_that_can_watch_children_is_well() -> None:
    finding = found("pidfd_open")

    assert finding is not None
    assert finding.grade == "ok"
