"""Where bodies are kept: in memory while they are small, in an unnamed file once they are large."""

import contextlib
import tempfile
from typing import BinaryIO

from qmsup.errors import Code, Refusal, RequestError
from qmsup.log import Log

SPOOL_ABOVE = 1024 * 1024
"""Bytes. A larger body goes to a file: memory is for many clients, not for one picture."""

_log = Log("listener")


class Spool:
    """One body as it comes. It is to be closed if its content is not wanted.

    Attributes:
        length: of what has come, in bytes.
    """

    __slots__ = ("_file", "_kept", "length")

    def __init__(self) -> None:
        """Nothing has come."""
        self.length = 0
        self._kept: list[bytes] = []
        self._file: BinaryIO | None = None

    def add(self, piece: bytes) -> None:
        """More of it.

        Raises:
            RequestError: there is no room for it.
        """
        self.length += len(piece)
        if self._file is None and self.length <= SPOOL_ABOVE:
            self._kept.append(piece)
            return
        try:
            if self._file is None:
                # Unnamed: it is gone with its last descriptor, whatever happens to this process.
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the relay
                for earlier in self._kept:
                    _write(self._file, earlier)
                self._kept.clear()
            _write(self._file, piece)
        except OSError as error:
            raise _no_room(error) from error

    def content(self) -> bytes | BinaryIO:
        """All of it: the bytes, or an open file at its start that holds them."""
        if self._file is None:
            return b"".join(self._kept)
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Give the file back, if there is one."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def _write(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _no_room(error: OSError) -> RequestError:
    folder = tempfile.tempdir or "the folder of temporary files"
    _log.error("body.no_room", folder=folder, because=error.strerror)
    return RequestError(
        Refusal(
            code=Code.INTERNAL_ERROR,
            message=f"{folder} has no room for the body of this request ({error.strerror}):"
            " free some, or have TMPDIR name a larger folder for `qmsup serve`",
        )
    )
