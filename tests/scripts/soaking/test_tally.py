from scripts.soaking.tally import Tally


def test_what_was_counted_is_shown_when_it_is_time() -> None:
    lines: list[str] = []
    tally = Tally(lines.append, every_s=0.0)

    tally.add("histories")
    tally.add("steps", 30)

    assert len(lines) == 2
    assert " s  1 histories  30 steps (" in lines[1]


def test_nothing_is_shown_before() -> None:
    lines: list[str] = []
    tally = Tally(lines.append, every_s=3600.0)

    tally.add("steps")

    assert lines == []
    assert tally.counts["steps"] == 1
