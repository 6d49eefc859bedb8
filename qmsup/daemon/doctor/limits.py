"""What the system lets a process of ours have: open files, memory, and what its kernel can do."""

import os
import resource
from collections.abc import Iterator

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding

_check = Check("limits")

_FILES_FEW = 4096
"""A stream takes two in a listener. Below this a burst of clients meets the limit before any other."""
_FILES_TOO_FEW = 256
"""The scheduler alone has some dozens, and each child and listener a few more."""
_UNLIMITED = resource.RLIM_INFINITY
_LOCKS_MEMORY = ("--mlock", "mlock")


def look(box: Box) -> Iterator[Finding]:
    """Every limit that has been somebody's trouble."""
    yield _open_files()
    yield from _sizes(box)
    yield _pidfd()


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    says = f"{_words(soft)} per process (at most {_words(hard)})"
    do = "raise it: `ulimit -n 65536` before the start, LimitNOFILE=65536 in systemd, minfds in supervisord"
    if soft != _UNLIMITED and soft < _FILES_TOO_FEW:
        return _check.bad("open files", f"{says}: too few for a listener", do)
    if soft != _UNLIMITED and soft < _FILES_FEW:
        return _check.warn("open files", f"{says}: enough for some {soft // 3} streams at once", do)
    return _check.ok("open files", says)


def _sizes(box: Box) -> Iterator[Finding]:
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != _UNLIMITED:
        yield _check.warn(
            "address space",
            f"limited to {address_space >> 20} MiB: a GPU's driver maps far more than it uses",
            "lift it: `ulimit -v unlimited`, LimitAS=infinity in systemd",
        )
    file_size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if file_size != _UNLIMITED:
        yield _check.warn(
            "file size",
            f"limited to {file_size >> 20} MiB: a child whose log grows to that is ended by SIGXFSZ",
            "lift it: `ulimit -f unlimited`, LimitFSIZE=infinity in systemd",
        )
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    models = [] if box.spec is None else list(box.spec.models.values())
    locking = [model.id for model in models if any(word in _LOCKS_MEMORY for word in model.argv)]
    if locking and locked != _UNLIMITED:
        yield _check.warn(
            "locked memory",
            f"limited to {locked >> 10} KiB, and {', '.join(locking)} want to lock their weights",
            "lift it: `ulimit -l unlimited`, LimitMEMLOCK=infinity in systemd; or leave out --mlock",
        )


def _pidfd() -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return _check.bad(
            "pidfd_open",
            f"the system does not allow it ({error.strerror}), and children cannot be watched without",
            "use Linux 5.3 or newer; in a container, a seccomp profile that allows pidfd_open",
        )
    return _check.ok("pidfd_open", "children can be watched")


def _words(limit: int) -> str:
    return "unlimited" if limit == _UNLIMITED else str(limit)
