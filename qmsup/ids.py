"""Names of things. Each is a plain value with a type of its own, so that mixing two up fails the type check."""

from typing import NewType

ModelId = NewType("ModelId", str)
"""The key of one entry of `models:`. Aliases are resolved before a ModelId exists."""

ListenerName = NewType("ListenerName", str)
"""The key of one entry of `listeners:`."""

HostName = NewType("HostName", str)
"""The key of one entry of `hosts:`; `local` is this box."""

RouteName = NewType("RouteName", str)
"""What a client calls a route: a key of `routes:`, or a concrete name that a template among them matches."""

WorkerId = NewType("WorkerId", str)
"""One listener worker process: `listener-pid-random`. It is also its ZeroMQ identity."""

RequestId = NewType("RequestId", str)
"""One request for a model, unique over all workers and restarts. A granted request's lease has the same id."""

LeaseId = NewType("LeaseId", str)
"""One use of a model. The lease of a request carries the request's id."""

AskId = NewType("AskId", str)
"""One question of a control client, repeatable: the same id gets the same answer."""

Incarnation = NewType("Incarnation", int)
"""The number of one start of a model's child. It grows for ever, so a late report of an old child is known."""

EventNumber = NewType("EventNumber", int)
"""The position of an event in the scheduler's history. Each effect names the event that caused it."""

Epoch = NewType("Epoch", int)
"""The number of one life of the scheduler process; the first is 1."""
