"""A box at a glance, from bodies as the feed tells them."""

from typing import Any

from qmsup.control.overview import Line, lines_of

NOW = 1_700_000_000.0
CHAT = {
    "name": "chat",
    "state": "ready",
    "pid": 5,
    "vram_mib": 12 * 1024,
    "inflight": 2,
    "queued": 1,
    "held_until": NOW + 9,
    "unloads_at": NOW + 65,
    "pinned": True,
    "error": None,
}
VIDEO = CHAT | {
    "name": "video",
    "state": "failed",
    "pid": None,
    "held_until": None,
    "unloads_at": None,
    "pinned": False,
    "error": "exited with code 1",
}
VRAM = {
    "budget_mib": 24 * 1024,
    "ours_mib": 12 * 1024,
    "ceiling_mib": 15 * 1024,
    "used_mib": 20 * 1024,
    "total_mib": 24 * 1024,
    "foreign_mib": 8 * 1024,
}
STATE: dict[str, Any] = {
    "vram.all": VRAM,
    "model.chat": CHAT,
    "model.video": VIDEO,
    "line.video": {"waiting": 3, "position": 1, "because": "busy", "behind": ["chat"]},
    "line.chat": {"waiting": 1, "position": 4, "because": "at_limit", "behind": []},
    "lease.j": {"lease": "j", "model": "chat", "kind": "job", "owner": "me", "purpose": "a film"},
    "lease.r": {"lease": "r", "model": "chat", "kind": "request", "owner": "w", "purpose": ""},
}
DECISIONS = [
    {"time": NOW, "decision": "swap.started", "model": "chat", "evicts": ["video"], "because": "x"},
    {"time": NOW + 1, "decision": "box.open", "model": None, "evicts": [], "because": None},
]


def test_who_takes_nothing_new_is_draining() -> None:
    lines = shown({"model.chat": CHAT | {"closing": "unload"}})
    assert any(line.startswith("chat") and "draining" in line for line in lines)


def shown(state: dict[str, Any], *, width: int = 120, height: int = 100) -> list[str]:
    lines = lines_of(state, DECISIONS, now=NOW, width=width, height=height)
    return [_text(line) for line in lines]


def _text(line: Line) -> str:
    return "".join(part.text for part in line).rstrip()


def test_models_waiters_jobs_and_decisions_are_shown() -> None:
    lines = shown(STATE)

    memory = "models take 12.0G of 24.0G ████████████░░░░░░░░░░░░  at most 15.0G now"
    assert lines[0] == f"{memory}  GPUs 20.0G of 24.0G, others 8.0G"
    assert "  ".join(lines[3].split()) == (
        "chat  ready  12.0G  2  1  ████████████░░░░░░░░░░░░  pinned,  held  9s,  unloads  in  1m05s"
    )
    assert lines[5] == "  exited with code 1"
    waiting = lines.index("waiting")
    assert lines[waiting + 1 : waiting + 3] == [
        "   3 for video, the first at 1: busy (behind chat)",
        "   1 for chat, the first at 4: at_limit (behind -)",
    ]
    assert "     j on chat: a film" in lines
    assert lines[-2].endswith("swap.started chat evicts video (x)")
    assert lines[-1].endswith("box.open")


def test_what_runs_not_takes_no_memory() -> None:
    [video] = [line for line in shown(STATE) if line.startswith("video")]
    assert "░" * 24 in video


def test_a_narrow_screen_has_no_bars_for_models() -> None:
    lines = shown(STATE, width=60)
    assert not any("█" in line for line in lines[1:])
    assert not any("OF THE BUDGET" in line for line in lines)


def test_a_bar_has_a_heading_above_it() -> None:
    heading, model = (line for line in shown(STATE) if line.startswith(("MODEL", "chat")))
    assert heading.index("OF THE BUDGET") == min(map(model.index, "█░"))


def test_a_low_screen_has_the_newest_decisions_or_none() -> None:
    whole = len(shown(STATE))

    assert shown(STATE, height=whole - 1)[-1].endswith("box.open")
    assert len(shown(STATE, height=5)) == 5


def test_of_an_empty_box_there_is_little_to_show() -> None:
    lines = lines_of({}, [], now=NOW, width=80, height=50)
    assert [_text(line).split() for line in lines] == [
        ["models", "take", "0M"],
        [],
        ["MODEL", "STATE", "VRAM", "USES", "WAIT", "KEPT"],
    ]


def test_more_than_the_budget_is_red() -> None:
    lines = lines_of({"vram.all": VRAM | {"ours_mib": 30 * 1024}}, [], now=NOW, width=80, height=50)
    assert [part.style for part in lines[0] if "█" in part.text] == ["red"]


def test_many_jobs_are_counted() -> None:
    jobs = {f"lease.{n}": STATE["lease.j"] | {"lease": str(n)} for n in range(15)}
    assert "     and 3 more" in shown(jobs)
