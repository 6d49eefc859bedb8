from pathlib import Path

import pytest

from tests.support.models import tiny_model


def test_a_model_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMSUP_TEST_CACHE", str(tmp_path))

    first = tiny_model("alpha")
    made = first.stat().st_mtime_ns

    assert tiny_model("alpha") == first
    assert first.stat().st_mtime_ns == made
    assert tiny_model("alpha", eos_p=0) != first
    assert not list(tmp_path.glob("*.part"))
