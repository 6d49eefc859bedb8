"""How many descriptors a worker may have open: two sockets for each client."""

from qmsup import open_files
from qmsup.log import Log

WANTED = 2 * 2000 + 200
"""Two sockets for each of 2 000 clients, and what a process needs anyway."""

_log = Log("worker")


def raise_limit() -> None:
    """Take all that the hard limit allows; a warning says what to do if that is little."""
    limit = open_files.raise_limit()
    if 0 <= limit < WANTED:
        _log.warning(
            "worker.few_descriptors",
            limit=limit,
            wanted=WANTED,
            advice="raise it: LimitNOFILE= (systemd), minfds (supervisord) or ulimit -n (a shell);"
            " clients beyond half of it wait to be accepted",
        )
