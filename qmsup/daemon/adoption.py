"""What a former scheduler left running is gone on with, where it is proved ours, still wanted, and answers."""

import select
import time
from collections.abc import Iterator

from qmsup.ids import ModelId
from qmsup.log import Log
from qmsup.processes import stop
from qmsup.processes.adopt import adopt
from qmsup.processes.child import Child
from qmsup.processes.leftovers import stop_leftovers
from qmsup.processes.records import Record
from qmsup.spec import Spec
from qmsup.units import Seconds
from qmsup.upstream.probe import Found, Probe
from qmsup.upstream.readiness import LOG_CHECK, ReadinessCheck

_ANSWERS_WITHIN = Seconds(2.0)
"""A child that serves answers in milliseconds. One that hangs would hold up everybody who waits for its model."""
_GRACE = Seconds(3.0)

_log = Log("adoption")


def take_over(spec: Spec) -> tuple[Child, ...]:
    """The children to go on with, one a model at most; all others of a dead scheduler are ended. Waits.

    Args:
        spec: the configuration in force; what runs for a model that it does not name is ended.
    """
    chosen: dict[ModelId, Child] = {}

    def keep(record: Record) -> bool:
        model = ModelId(record.model)
        if not record.is_ready or model not in spec.models or model in chosen:
            return False
        child = adopt(record)
        if child is not None:
            chosen[model] = child
        return child is not None

    stop_leftovers(keep=keep)
    healthy = set(_answering(chosen, spec))
    _end([chosen[model] for model in sorted(chosen.keys() - healthy)])
    return tuple(child for model, child in chosen.items() if model in healthy)


def _answering(children: dict[ModelId, Child], spec: Spec) -> Iterator[ModelId]:
    """Those that say they are ready; all are asked at once."""
    asked: dict[int, tuple[ModelId, Probe]] = {}
    poll = select.poll()
    for model, child in children.items():
        check = spec.models[model].ready_check
        if check.startswith(LOG_CHECK):
            check = "tcp"  # the line was there when it became ready
        probe = ReadinessCheck(check, child.record.host, child.record.port).ask()
        if probe is None:
            yield model
            continue
        asked[probe.fileno()] = (model, probe)
        poll.register(probe.fileno(), probe.events)
    until = time.monotonic() + _ANSWERS_WITHIN
    while asked and (left := until - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000.0):
            model, probe = asked[fd]
            answer = probe.look()
            if answer is None:
                poll.modify(fd, probe.events)
                continue
            del asked[fd]
            poll.unregister(fd)
            probe.close()
            if answer.found is Found.READY:
                yield model
    for _, probe in asked.values():
        probe.close()


def _end(children: list[Child]) -> None:
    """End those that do not answer, all within one grace."""
    for child in children:
        record = child.record
        _log.warning(
            "leftover.unhealthy",
            model=record.model,
            pid=child.pid,
            because=f"it does not answer at {record.host}:{record.port}",
        )
        stop.terminate(child)
    until = time.monotonic() + _GRACE
    for child in children:
        if not stop.end(child, grace=Seconds(max(0.0, until - time.monotonic()))):
            _log.error("leftover.stuck", model=child.record.model, pid=child.pid)
