"""What is looked at."""

from dataclasses import dataclass
from pathlib import Path

from qmsup.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """This machine, as one configuration would use it.

    Attributes:
        config: the file; None = none was named, and what only it tells of is not looked at.
        spec: what it says; None = nothing that can be used.
        problems: why it cannot be used.
        remarks: how much `qmsup check` has to say of it all the same.
    """

    config: Path | None = None
    spec: Spec | None = None
    problems: tuple[str, ...] = ()
    remarks: int = 0
