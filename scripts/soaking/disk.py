"""A small disk for the state folder, which can be filled to the last byte."""

import contextlib
import subprocess
from pathlib import Path

_SIZE = "64m"
_BALLAST = "ballast"


class Disk:
    """A file system in memory, mounted on a folder. Root alone may have one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self) -> bool:
        """Put it there; False when that is not allowed, as in most containers."""
        self.folder.mkdir(mode=0o700)
        options = f"size={_SIZE},mode=0700"
        words = ["mount", "-t", "tmpfs", "-o", options, "qmsup-soak", str(self.folder)]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    def fill(self) -> None:
        """Take all the room that there is."""
        for piece in (bytes(1 << 20), bytes(512)):
            with contextlib.suppress(OSError), (self.folder / _BALLAST).open("ab", 0) as ballast:
                while True:
                    ballast.write(piece)

    def empty(self) -> None:
        """Give it back."""
        (self.folder / _BALLAST).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take the disk away, whoever has files of it open, and the folders that stand around it."""
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)
        for folder in (self.folder, self.folder.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()
