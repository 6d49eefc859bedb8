"""What a former scheduler left running is gone on with, where it is proved ours, still wanted, and not found unfit.

One that answers late is in the midst of something, or the machine is: to end it would cut off its streams and lose its
job. Whether it hangs is found out later, as of any other (`core.lifecycle.liveness`).
"""

import select
import time
from collections.abc import Iterator

from qmsup.ids import ModelId
from qmsup.log import Log
from qmsup.processes import stop, work
from qmsup.processes.adopt import adopt
from qmsup.processes.child import Child
from qmsup.processes.leftovers import stop_leftovers
from qmsup.processes.records import Record
from qmsup.spec import Spec
from qmsup.units import Seconds
from qmsup.upstream.probe import Found, Probe
from qmsup.upstream.readiness import LOG_CHECK, ReadinessCheck

_ANSWERS_WITHIN = Seconds(2.0)
"""A child that serves answers in milliseconds. Nobody waits longer for one that does not."""
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
    unfit = dict(_unfit(chosen, spec))
    _end({model: (chosen[model], unfit[model]) for model in sorted(unfit)})
    return tuple(child for model, child in chosen.items() if model not in unfit)


def _unfit(children: dict[ModelId, Child], spec: Spec) -> Iterator[tuple[ModelId, str]]:
    """Those that say they are not ready, and those that cannot say anything, with the reason. All are asked at once."""
    asked: dict[int, tuple[ModelId, Probe]] = {}
    poll = select.poll()
    for model, child in children.items():
        check = spec.models[model].ready_check
        if check.startswith(LOG_CHECK):
            check = "tcp"  # the line was there when it became ready
        probe = ReadinessCheck(check, child.record.host, child.record.port).ask()
        if probe is None:
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
            if answer.found is not Found.READY:
                yield model, f"it is not ready: {answer.words}"
    for model, probe in asked.values():
        probe.close()
        child = children[model]
        if work.look_at(child).is_stopped:
            yield model, "it answers nothing: a signal stopped it (SIGSTOP)"
        else:
            hint = "it is gone on with: it may be busy; if it hangs it will be ended"
            _log.warning("leftover.silent", model=model, pid=child.pid, hint=hint)


def _end(unfit: dict[ModelId, tuple[Child, str]]) -> None:
    """End them, all within one grace."""
    for model, (child, because) in unfit.items():
        _log.warning("leftover.unhealthy", model=model, pid=child.pid, because=because)
        stop.terminate(child)
    until = time.monotonic() + _GRACE
    for child, _ in unfit.values():
        if not stop.end(child, grace=Seconds(max(0.0, until - time.monotonic()))):
            _log.error("leftover.stuck", model=child.record.model, pid=child.pid)
