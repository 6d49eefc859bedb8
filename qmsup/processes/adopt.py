"""Takes over a child of a scheduler that died, once it is proved to be the one that its record names."""

import os

from qmsup import places
from qmsup.errors import ChildError
from qmsup.ids import ModelId
from qmsup.log import Log
from qmsup.processes import procfs, records
from qmsup.processes.child import NONCE_VARIABLE, Child
from qmsup.processes.records import Record

_log = Log("processes")


def adopt(record: Record) -> Child | None:
    """The living child that a record names; None where that cannot be proved, or it has ended.

    The descriptor comes first: what is proved after it was opened is true of the process that it stands for, whoever
    gets the pid later.
    """
    try:
        pidfd = os.pidfd_open(record.pid)
    except (OSError, ValueError, OverflowError):
        return None
    if not _is_proved(record):
        os.close(pidfd)
        return None
    record = records.owned(record)
    try:
        records.write(record)
    except ChildError as error:  # the former scheduler's record still names it
        _log.warning("child.record_incomplete", model=record.model, error=str(error))
    log = places.log_file(ModelId(record.model))
    return Child(record=record, pidfd=pidfd, log=log, log_start=record.log_start, process=None)


def _is_proved(record: Record) -> bool:
    stat = procfs.stat_of(record.pid)
    return (
        stat is not None
        and stat.is_alive
        and stat.start_ticks == record.start_ticks
        and record.boot == procfs.boot_id()
        and procfs.has_in_environ(record.pid, f"{NONCE_VARIABLE}={record.nonce}")
    )
