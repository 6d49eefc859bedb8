"""The addresses of the listeners and the ports of the models."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from qmsup.daemon.addresses import problem_with
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.daemon.doctor.running import is_ours, name_of, scheduler_pid
from qmsup.errors import ChildError, key_text
from qmsup.ids import ModelId
from qmsup.processes import leftovers, procfs
from qmsup.processes.command import fixed_port, is_answered_here, named_ports
from qmsup.processes.listening import listening_inodes
from qmsup.processes.ports import PortPool
from qmsup.spec import ListenerSpec, Spec

_check = Check("ports")
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MOST_TRIED = 50


def look(box: Box) -> Iterator[Finding]:
    """Each listener's address, each model's own port, and the range for the others."""
    if box.spec is None:
        return
    for listener in box.spec.listeners.values():
        yield _of_listener(listener)
    yield from _of_models(box.spec)
    yield from _of_shared(box.spec)


def _of_listener(listener: ListenerSpec) -> Finding:
    about = f"{listener.host}:{listener.port}"
    problem = problem_with(listener)
    if problem is None:
        return _check.ok(about, f"free for listener {listener.name}")
    holders = _holders(listener.port)
    ours = [pid for pid in holders if is_ours(pid)]
    if ours and scheduler_pid() is not None:
        return _check.ok(about, f"served by the qmsup that runs (pid {ours[0]})")
    if ours:
        return _check.warn(
            about,
            f"listener {listener.name}: {_named(ours[:1])} is there, and no scheduler runs on these folders",
            "start the scheduler that it waits for (`qmsup scheduler`); end it before a `qmsup serve`; if it is"
            " another qmsup's, choose another address",
        )
    held = f", held by {_named(holders)}" if holders else ""
    says, _, do = problem.partition(": ")[2].partition(": ")
    return _check.bad(about, f"listener {listener.name}: {says}{held}", do)


def _of_models(spec: Spec) -> Iterator[Finding]:
    picked = 0
    for model in spec.models.values():
        try:
            port = fixed_port(model)
        except ChildError as error:
            yield _check.bad(model.id, str(error), f"correct models.{key_text(model.id)}.proxy")
            continue
        if port is None:
            picked += 1
        elif (
            (holders := _holders(port))
            and scheduler_pid() is None
            and not _was_left(model.id, port)
        ):
            yield _check.bad(
                str(port),
                f"{model.id} is to answer there, but {_named(holders)} does",
                "end that, or leave the port to qmsup with ${PORT}",
            )
    if picked:
        yield from _of_range(spec, min(picked, _MOST_TRIED))


def _of_shared(spec: Spec) -> Iterator[Finding]:
    """Ports that several name: whoever comes second finds it taken."""
    models: dict[int, list[ModelId]] = {}
    for model in spec.models.values():
        with contextlib.suppress(ChildError):  # told above
            if (port := fixed_port(model)) is not None and is_answered_here(model):
                models.setdefault(port, []).append(model.id)
    leave_it = "leave the ports of models to qmsup with ${PORT}"
    listeners = {listener.port: listener.name for listener in spec.listeners.values()}
    for port, names in models.items():
        if port in listeners:
            says = f"{', '.join(names)} cannot be loaded: the port is listener {listeners[port]}'s"
            yield _check.bad(str(port), says, leave_it)
        elif len(names) > 1:
            says = f"{', '.join(names)} name the same port: one is loaded only while the others are not"
            yield _check.warn(str(port), says, leave_it)


def _was_left(model: ModelId, port: int) -> bool:
    """Whether the model's child of before may have the port: the next scheduler goes on with it, or ends it."""
    return any(left.model == model and left.port == port for left in leftovers.look().alive)


def _of_range(spec: Spec, wanted: int) -> Iterator[Finding]:
    about = f"from {spec.start_port}"
    pool = PortPool(spec.start_port, reserved=named_ports(spec))
    elsewhere = "set startPort to where there are free ones"
    try:
        taken = [pool.take() for _ in range(wanted)]
    except ChildError as error:
        yield _check.bad(about, f"models: {wanted}; {error}", elsewhere)
        return
    low, high = _ephemeral()
    if low <= taken[-1] and taken[0] <= high:
        yield _check.warn(
            about,
            f"the models' ports lie among those ({low} to {high}) that the system gives to outgoing connections",
            f"set startPort below {low}: else a port may be taken in the moment a model wants it",
        )
    else:
        yield _check.ok(about, f"{taken[0]} to {taken[-1]} can be had for models")


def _ephemeral() -> tuple[int, int]:
    try:
        low, high = _EPHEMERAL.read_text().split()
        return int(low), int(high)
    except (OSError, ValueError):
        return 65536, 65536


def _holders(port: int) -> list[int]:
    """Who listens on a port, as far as we may look."""
    inodes = listening_inodes(port)
    if not inodes:
        return []
    return [stat.pid for stat in procfs.all_stats() if inodes & procfs.socket_inodes(stat.pid)]


def _named(pids: list[int]) -> str:
    return ", ".join(f"pid {pid} ({name_of(pid)})" for pid in pids[:3])
