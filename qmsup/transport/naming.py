"""A Unix socket's name in its folder, given again when somebody removed it.

Who is connected stays so without it. But nobody new finds the way: no command, and no worker that is started later.
"""

import zmq

from qmsup.transport import context
from qmsup.transport.doorkeeper import may_be_shut


def name_again(socket: zmq.Socket[bytes], endpoint: str) -> bool:
    """Bind a second time where there is no name any more; whether it was so.

    The first binding stays, a descriptor that nobody can reach: to end it would end every connection that came by it.

    Args:
        socket: bound to this already, and of this thread.
        endpoint: `ipc://path`.

    Raises:
        OSError: it cannot be bound there.
    """
    if may_be_shut(endpoint.removeprefix("ipc://")):
        return False
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise context.os_error(error, endpoint) from error
    return True
