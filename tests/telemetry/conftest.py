"""The fake driver library, loaded into this process."""

import ctypes
from pathlib import Path

import pynvml
import pytest

from qmsup.telemetry.visible import VARIABLE as WISH
from tests.fakes.gpu import VARIABLE, FakeGpu
from tests.support.gpu import fake_library


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """A card that this process's NVML tells of, once something is shown; whatever the machine has is not seen."""
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(fake_library())))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    gpu = FakeGpu(tmp_path)
    monkeypatch.setenv(VARIABLE, str(gpu.file))
    monkeypatch.delenv(WISH, raising=False)
    return gpu
