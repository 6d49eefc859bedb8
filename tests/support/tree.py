"""The repository as files, for tests about its shape."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked_files() -> list[Path]:
    """What belongs to the repository; a tree without git, such as an unpacked archive, has no list."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, capture_output=True, check=False)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def modules() -> list[Path]:
    """Every Python file of the package, as a path from the repository's root."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / "qmsup").rglob("*.py"))


def files_of_tests() -> list[Path]:
    """Every Python file under tests, as a path from the repository's root."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))
