"""The event that tells what a former life of the scheduler left running."""

from qmsup.core.scheduling.messages import message
from qmsup.ids import Incarnation, LeaseId, ModelId, WorkerId
from qmsup.units import MiB, Seconds


@message
class AdoptedChild:
    """A child of a former scheduler that is proved to be ours, and answers.

    Attributes:
        is_as_configured: it runs with the command that the configuration has for its model now.
        est_vram: what it was charged, which counts where it runs with another command.
        age: of its process.
    """

    model: ModelId
    incarnation: Incarnation
    pid: int
    port: int
    upstream: str
    total_slots: int | None = None
    context: int | None = None
    is_as_configured: bool = True
    est_vram: MiB = MiB(0)
    age: Seconds = Seconds(0.0)


@message
class KeptJob:
    """A job's lease from a former life.

    Attributes:
        left: until it has to be renewed.
    """

    lease: LeaseId
    model: ModelId
    owner: str
    purpose: str
    left: Seconds


@message
class Recovered:
    """What is left of a former life of the scheduler. The first event of a life, if there is anything.

    Attributes:
        workers: listeners' workers that live and have not greeted yet: what they have is not known before they do.
        order: models by their last use, the coldest first.
        holds: how much longer models are held.
    """

    children: tuple[AdoptedChild, ...] = ()
    workers: tuple[WorkerId, ...] = ()
    jobs: tuple[KeptJob, ...] = ()
    order: tuple[ModelId, ...] = ()
    holds: tuple[tuple[ModelId, Seconds], ...] = ()
    pins: tuple[ModelId, ...] = ()
    is_draining: bool = False
