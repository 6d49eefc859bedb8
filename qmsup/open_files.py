"""How many descriptors this process may have open, and how many the programs that it starts."""

import errno
import resource

MORE = "raise the limit of open files (ulimit -n, LimitNOFILE=)"
"""What to do where none is left."""

_handed_down = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""As it was before it was raised here, if it was."""


def raise_limit() -> int:
    """Take all that the hard limit allows; says how many that is, -1 = any number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return -1 if hard == resource.RLIM_INFINITY else hard


def is_used_up(error: BaseException | None) -> bool:
    """Whether something failed for want of a descriptor, this process's or the machine's."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def at_most(wanted: int) -> int:
    """So many, but no more than a fourth of all that this process may have: others have to live, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 4)


def hand_down(pid: int) -> None:
    """Give a program that was just started the limit that this process was started with.

    Some close every number that could be a descriptor, one by one, which takes seconds with a million of them.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (_handed_down, hard))
