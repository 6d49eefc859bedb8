"""What is always true between two events. A contradiction is our bug, and is said in words."""

from qmsup.core.scheduling.state import State
from qmsup.units import Seconds


def check(state: State, now: Seconds) -> None:
    """Raise when the state contradicts itself."""
