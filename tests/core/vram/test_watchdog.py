"""When too much is held: whom it costs, and when."""

import pytest

from qmsup.core.vram.watchdog import Candidate, Watch, victims
from qmsup.ids import ModelId
from qmsup.units import MiB, Seconds

GRACE = Seconds(30.0)

VICTIMS = {
    # candidates (a+ = somebody may come back), excess → who goes
    "nothing too much": ("a:5", 0, ""),
    "the largest goes": ("a:5 b:9 c:7", 1, "b"),
    "until it fits": ("a:5 b:9 c:7", 10, "b c"),
    "to the MiB": ("a:5 b:9 c:7", 9, "b"),
    "all of them where that is not enough": ("a:5 b:9", 99, "b a"),
    "who is kept for somebody goes last": ("a+:9 b:5 c:1", 3, "b"),
    "but goes": ("a+:9 b:5 c+:10", 7, "b c"),
    "equals by name": ("b:5 a:5", 1, "a"),
    "who holds nothing frees nothing": ("a:0 b+:5", 1, "b"),
    "nobody": ("", 5, ""),
}


@pytest.mark.parametrize(("words", "excess", "gone"), VICTIMS.values(), ids=VICTIMS)
def test_victims(words: str, excess: int, gone: str) -> None:
    candidates = [
        Candidate(
            model=ModelId(name.rstrip("+")), holds=MiB(int(holds)), is_kept=name.endswith("+")
        )
        for name, holds in (word.split(":") for word in words.split())
    ]

    assert " ".join(victims(candidates, MiB(excess))) == gone


def watched(*looks: tuple[float, bool]) -> Watch:
    watch = Watch()
    for now, is_over in looks:
        watch = watch.after(is_over=is_over, now=Seconds(now))
    return watch


def test_too_much_for_the_whole_grace() -> None:
    assert watched().due(GRACE) is None
    assert watched((5, True), (7, True), (20, True)).due(GRACE) == 35.0


def test_a_pause_begins_it_anew() -> None:
    assert watched((5, True), (20, False)).due(GRACE) is None
    assert watched((5, True), (20, False), (21, False), (22, True)).due(GRACE) == 52.0


@pytest.mark.parametrize(("grace", "next_time"), [(30.0, 95.0), (10.0, 95.0), (100.0, 235.0)])
def test_then_it_rests(grace: float, next_time: float) -> None:
    rested = watched((5, True)).rested(Seconds(grace), Seconds(35.0))

    assert rested.due(Seconds(grace)) is None
    assert rested.after(is_over=True, now=Seconds(36.0)).due(Seconds(grace)) == next_time
