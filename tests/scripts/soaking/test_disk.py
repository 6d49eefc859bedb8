from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.soaking.disk import Disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "box" / "state")
    disk.folder.parent.mkdir()
    has_disk = disk.mount()
    try:
        if not has_disk:
            pytest.skip("only root may mount a disk")
        yield disk
    finally:
        disk.unmount()
    assert not disk.folder.parent.exists()


def test_it_can_be_filled_to_the_last_byte_and_emptied(disk: Disk) -> None:
    small = disk.folder / "small"
    small.write_bytes(b"x")

    disk.fill()

    with pytest.raises(OSError, match="No space"):
        (disk.folder / "more").write_bytes(b"x")
    assert small.read_bytes() == b"x"
    disk.empty()
    disk.empty()
    (disk.folder / "more").write_bytes(b"x")
