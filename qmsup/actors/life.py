"""What is fixed for one life of the scheduler process."""

from dataclasses import dataclass
from pathlib import Path

from qmsup.ids import Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Made by the assembly before any actor.

    Attributes:
        endpoint: the ROUTER socket's address.
        since: when the process started, in Unix seconds.
    """

    epoch: Epoch
    endpoint: str
    config: Path
    since: float
