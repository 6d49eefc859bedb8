"""Reading what our own child wrote about itself."""

import json
import time
from pathlib import Path

from scripts.benchmark.programs import BenchError


class Notes:
    """The notes of one child, or of its successive incarnations, read as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_to = 0
        self._pending: list[dict[str, int | str]] = []

    def skip(self) -> None:
        """Forget what is there already."""
        self._fetch()
        self._pending.clear()

    def wait(self, what: str, *, timeout_s: float = 10.0, **fields: int) -> dict[str, int]:
        """The next note of this kind with these fields; the ones before it are dropped.

        Raises:
            BenchError: There was none in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            while self._pending:
                note = self._pending.pop(0)
                if note.pop("what") == what and fields.items() <= note.items():
                    return {name: int(value) for name, value in note.items()}
            if time.monotonic() > deadline:
                raise BenchError(
                    f"the child noted no {what!r} {fields or ''} within {timeout_s:g} s"
                )
            if not self._fetch():
                time.sleep(0.001)

    def _fetch(self) -> bool:
        if not self._path.exists():
            return False
        with self._path.open("rb") as file:
            file.seek(self._read_to)
            complete, _, _ = file.read().rpartition(b"\n")
        if complete:
            self._read_to += len(complete) + 1
            self._pending += [json.loads(line) for line in complete.splitlines()]
        return bool(complete)
