"""What a look yields."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well as it might, or not for long."""
    BAD = "bad"
    """Something will not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: what kind of thing.
        about: which one, in a word or a path.
        says: how it is.
        do: what to do; "" when nothing is to be done.
    """

    check: str
    about: str
    grade: Grade
    says: str
    do: str = ""


class Check:
    """Makes the findings of one kind."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ok(self, about: str, says: str) -> Finding:
        """It is as it should be."""
        return Finding(check=self.name, about=about, grade=Grade.OK, says=says)

    def warn(self, about: str, says: str, do: str) -> Finding:
        """It may be a pity."""
        return Finding(check=self.name, about=about, grade=Grade.WARN, says=says, do=do)

    def bad(self, about: str, says: str, do: str) -> Finding:
        """It will not work."""
        return Finding(check=self.name, about=about, grade=Grade.BAD, says=says, do=do)
