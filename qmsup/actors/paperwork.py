"""The records of children on disk, written when nobody waits for it: a busy disk takes its time even for a small file.

A child that is spawned is on record already, by its nonce; what is added here makes it easier to find, and lets a later
scheduler go on with it. A record that stands for a moment longer than its child names a process that is gone.
"""

from dataclasses import replace

from qmsup.errors import ChildError
from qmsup.log import Log
from qmsup.processes import records
from qmsup.processes.child import Child
from qmsup.processes.records import Record
from qmsup.units import Seconds

_AT_ONCE = Seconds(0.0)

_log = Log("child")


class Paperwork:
    """What is to be written and erased, of one owner's children."""

    __slots__ = ("_to_erase", "_to_write", "due")

    def __init__(self) -> None:
        self._to_write: Record | None = None
        self._to_erase: list[Record] = []
        self.due: Seconds | None = None
        """When `do` is wanted at the latest; None = there is nothing to do."""

    def note(self, child: Child, *, by: Seconds = _AT_ONCE, **facts: object) -> None:
        """Have more on record of a child.

        Args:
            child: whose record it is.
            by: when it is to be written at the latest; what else comes to be written takes it along.
            facts: fields of its record, by name.
        """
        child.record = replace(child.record, **facts)  # type: ignore[arg-type]  # a wrong one is our bug
        self._to_write = child.record
        self.due = by if self.due is None else min(by, self.due)

    def strike(self, child: Child) -> None:
        """The child is gone: have its record erased."""
        self._to_erase.append(child.record)
        self.due = _AT_ONCE
        if self._to_write is not None and self._to_write.path == child.record.path:
            self._to_write = None

    def do(self) -> None:
        """Do all of it now."""
        self.due = None
        while self._to_erase:
            records.erase(self._to_erase.pop())
        record, self._to_write = self._to_write, None
        if record is None:
            return
        try:
            records.write(record)
        except ChildError as error:  # should this scheduler die, the next one ends the child
            _log.warning("child.record_incomplete", model=record.model, error=str(error))
