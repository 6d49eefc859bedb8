"""What is fixed for one life of the scheduler process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qmsup.actors.sampling import SampleReader
from qmsup.ids import Epoch
from qmsup.processes.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Made by the assembly before any actor.

    Attributes:
        endpoint: the ROUTER socket's address.
        since: when the process started, in Unix seconds.
        survivors: children of a former scheduler to go on with, one a model.
        open_reader: makes what reads the memory, in a thread of its own; None = nothing is read.
    """

    epoch: Epoch
    endpoint: str
    config: Path
    since: float
    open_reader: Callable[[], SampleReader] | None = None
    survivors: tuple[Child, ...] = ()
