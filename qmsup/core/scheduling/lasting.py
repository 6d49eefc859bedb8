"""What happens to a lent lease whose further use lasts: it comes back, and the use has a lease of its own."""

from qmsup.core.scheduling.messages import message
from qmsup.ids import Incarnation, ModelId, RequestId, WorkerId
from qmsup.units import Seconds


@message
class UseLasted:
    """A worker serves a request under a lease that it was lent for another one, and will for longer than a moment.

    Attributes:
        request: its lease has this id from now on. The end of the lent one follows.
        hold, conversation, client: as a RequestArrived would have told.
    """

    listener: WorkerId
    request: RequestId
    model: ModelId
    incarnation: Incarnation
    hold: Seconds | None = None
    conversation: str = ""
    client: str = ""
