"""The ZeroMQ context: one per process, made after any fork, since its threads do not survive one."""

import os

import zmq

from qmsup.units import Seconds, ms_from_seconds

NOW = int(zmq.NOBLOCK)
MORE_NOW = int(zmq.NOBLOCK | zmq.SNDMORE)
"""Flags as plain numbers: pyzmq's `send_multipart` puts enums together for each frame, and is four times as slow."""

_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)

LINGER = Seconds(0.3)
"""How long a closed socket still delivers what was sent. The peer reads at once or is gone."""

_contexts: dict[int, zmq.Context[zmq.Socket[bytes]]] = {}
"""By pid: a forked child finds none of its own, and never touches its parent's."""


def current() -> zmq.Context[zmq.Socket[bytes]]:
    """This process's context, made when first asked for."""
    context = _contexts.get(os.getpid())
    if context is None or context.closed:
        context = _contexts[os.getpid()] = zmq.Context()
    return context


def destroy(linger: Seconds = LINGER) -> None:
    """Close every socket of this process and end its context; waits `linger` at most for what was sent.

    For the end of a process. Harmless when there is no context; a later socket makes a new one.
    """
    context = _contexts.pop(os.getpid(), None)
    if context is not None:
        context.destroy(linger=ms_from_seconds(linger))


def new_socket(kind: int, endpoint: str) -> zmq.Socket[bytes]:
    """A socket of this process's context.

    Args:
        kind: of ZeroMQ's.
        endpoint: what for, for the error.

    Raises:
        OSError: this process can have no descriptor more.
    """
    try:
        return current().socket(kind)
    except zmq.ZMQError as e:
        raise os_error(e, endpoint) from e


def is_readable(socket: zmq.Socket[bytes]) -> bool:
    """Whether a whole message is there. To try and be refused with an exception costs twice as much."""
    return bool(socket.getsockopt(_EVENTS) & _POLLIN)  # type: ignore[operator]  # an int, by the option


def receive(socket: zmq.Socket[bytes]) -> list[bytes]:
    """The frames of a message that is there.

    A frame that is not copied knows whether another follows: pyzmq's `recv_multipart` asks the socket after each, and
    takes half as long again.
    """
    frames: list[bytes] = []
    take, is_whole = socket.recv, False
    while not is_whole:
        frame = take(NOW, copy=False)
        frames.append(frame.bytes)
        is_whole = not frame.more
    return frames


def os_error(error: zmq.ZMQError | OSError, endpoint: str) -> OSError:
    """A failed bind or connect as the error that says which address, so that callers need not know zmq."""
    return OSError(error.errno, error.strerror, endpoint)
