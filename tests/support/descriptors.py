"""A process that can have no descriptor more."""

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def no_descriptor_left(*, but: int = 0) -> Iterator[None]:
    """For this process, but for so many, as long as nobody gives one back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as some, ExitStack() as taken:
        most = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1, hard))
        taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with suppress(OSError):
            while True:
                taken.callback(os.close, os.dup(some.fileno()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1 + but, hard))
        yield
