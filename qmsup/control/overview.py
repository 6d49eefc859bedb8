"""A box at a glance, as lines of text: models with their share of the memory, who waits, who works, what was decided.

Pure: the state of a mirror and a size go in, lines come out. A line is a list of parts with a style each, so that the
same lines serve a terminal and a file.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qmsup.control.table import NOTHING, duration, memory, text_of

_BAR = 24
_NARROW = 76
"""Columns below which bars give way to the words."""
_STYLES = {
    "ready": "green",
    "draining": "yellow",
    "starting": "yellow",
    "stopping": "yellow",
    "failed": "red",
}
_MOST_LEASES = 12


@dataclass(frozen=True, slots=True)
class Part:
    """Some text; `style` is a name that rich knows, "" = plain."""

    text: str
    style: str = ""


Line = tuple[Part, ...]


def lines_of(
    state: Mapping[str, Any],
    decisions: Sequence[Mapping[str, Any]],
    *,
    now: float,
    width: int,
    height: int,
) -> list[Line]:
    """The whole screen, at most `height` lines of about `width` columns.

    Args:
        state: body by topic, as a mirror has it.
        decisions: the newest last.
        now: Unix seconds.
        width: of a line.
        height: in lines; decisions get what is left.
    """
    lines = [_memory(state.get("vram.all") or {}), ()]
    lines += _models(state, now, width)
    lines += _waiting(state)
    lines += _working(state)
    left = height - len(lines) - 2
    if left > 0 and decisions:
        lines += [(), (Part("decisions", "bold"),)]
        lines += [_decision(decision, width) for decision in decisions[-left:]]
    return lines[:height]


def _memory(seen: Mapping[str, Any]) -> Line:
    budget, ours = seen.get("budget_mib"), seen.get("ours_mib") or 0
    parts = [Part("models take ", "bold"), Part(memory(ours))]
    if budget:
        parts.append(Part(f" of {memory(budget)} "))
        parts.append(_bar(ours, budget))
    ceiling = seen.get("ceiling_mib")
    if ceiling is not None and ceiling != budget:
        parts.append(Part(f"  at most {memory(ceiling)} now", "yellow"))
    if seen.get("used_mib") is not None:
        used, total = memory(seen["used_mib"]), memory(seen.get("total_mib"))
        parts.append(Part(f"  GPUs {used} of {total}, others {memory(seen.get('foreign_mib'))}"))
    return tuple(parts)


def _models(state: Mapping[str, Any], now: float, width: int) -> Iterator[Line]:
    models = _of_kind(state, "model.")
    budget = (state.get("vram.all") or {}).get("budget_mib")
    name = max([5, *(len(str(model["name"])) for model in models)])
    has_bars = bool(budget) and width >= _NARROW
    heading = f"{'MODEL':<{name}}  {'STATE':<9} {'VRAM':>6} {'USES':>5} {'WAIT':>5}  "
    heading += f"{'OF THE BUDGET':<{_BAR}}  KEPT" if has_bars else "KEPT"
    yield (Part(heading, "bold"),)
    for model in models:
        stands = "draining" if model.get("closing") else model["state"]
        style = _STYLES.get(stands, "")
        runs = model.get("pid") is not None
        size = model.get("vram_mib") if runs else None
        parts = [
            Part(f"{model['name']:<{name}}  "),
            Part(f"{stands:<9}", style),
            Part(f" {memory(size):>6} {model['inflight']:>5} {model['queued']:>5}  "),
        ]
        if budget and has_bars:
            parts.append(_bar(size or 0, budget))
            parts.append(Part("  "))
        parts.append(Part(_kept(model, now)))
        yield tuple(parts)
        if model.get("error"):
            yield (Part(f"  {model['error']}"[:width], "red"),)


def _kept(model: Mapping[str, Any], now: float) -> str:
    words = ["pinned"] if model.get("pinned") else []
    if model.get("held_until"):
        words.append(f"held {duration(model['held_until'] - now)}")
    if model.get("unloads_at"):
        words.append(f"unloads in {duration(model['unloads_at'] - now)}")
    return ", ".join(words)


def _waiting(state: Mapping[str, Any]) -> Iterator[Line]:
    line = [
        (topic.partition(".")[2], body)
        for topic, body in state.items()
        if topic.startswith("line.")
    ]
    if not line:
        return
    yield ()
    yield (Part("waiting", "bold"),)
    for model, body in sorted(line, key=lambda one: int(one[1]["position"])):
        behind = ", ".join(body.get("behind") or []) or NOTHING
        yield (
            Part(f"{body['waiting']:>4} for {model}, the first at {body['position']}: "),
            Part(str(body["because"]), "yellow"),
            Part(f" (behind {behind})"),
        )


def _working(state: Mapping[str, Any]) -> Iterator[Line]:
    jobs = [lease for lease in _of_kind(state, "lease.") if lease["kind"] == "job"]
    if not jobs:
        return
    yield ()
    yield (Part("jobs", "bold"),)
    for job in jobs[:_MOST_LEASES]:
        yield (Part(f"     {job['lease']} on {job['model']}: {text_of(job['purpose'])}"),)
    if len(jobs) > _MOST_LEASES:
        yield (Part(f"     and {len(jobs) - _MOST_LEASES} more"),)


def _decision(decision: Mapping[str, Any], width: int) -> Line:
    clock = time.strftime("%H:%M:%S", time.localtime(float(decision["time"])))
    words = [str(decision["decision"])]
    if decision.get("model"):
        words.append(str(decision["model"]))
    if decision.get("evicts"):
        words.append(f"evicts {', '.join(decision['evicts'])}")
    if decision.get("because"):
        words.append(f"({decision['because']})")
    return (Part(f"{clock}  ", "dim"), Part(" ".join(words)[: max(10, width - 10)]))


def _bar(part: float, whole: float) -> Part:
    filled = min(_BAR, round(_BAR * part / whole))
    style = "red" if part > whole else "cyan"
    return Part("█" * filled + "░" * (_BAR - filled), style)


def _of_kind(state: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [body for topic, body in state.items() if topic.startswith(kind)]
