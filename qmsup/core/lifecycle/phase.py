"""Where in its life a child is."""

from enum import StrEnum


class Phase(StrEnum):
    """As its owner sees it."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
