"""A box may not know the future, nor what it cannot see. What it could know it has to."""

import pytest

from scripts.soaking.gpu_blame import Around, Span


def span(since: float, until: float | None = None) -> Span:
    return Span(since=since, until=until)


NOBODY = Around(games=[], gaps=[])
PLAYED_BEFORE = Around(games=[span(50.0, 80.0)], gaps=[])
PLAYS = Around(games=[span(50.0)], gaps=[])
BEGAN_MEANWHILE = Around(games=[span(100.5, 103.0)], gaps=[])
CAME_LATER = Around(games=[span(102.0)], gaps=[])
UNSEEN = Around(games=[span(50.0)], gaps=[span(97.0, 99.0)])
BLIND_ALONE = Around(games=[], gaps=[span(97.0)])
BLIND_AND_LAGS = Around(games=[], gaps=[span(97.0)], lags=True)
LAGS_ALONE = Around(games=[], gaps=[], lags=True)


@pytest.mark.parametrize(
    ("around", "excused"),
    [
        (NOBODY, False),
        (PLAYED_BEFORE, False),
        (PLAYS, False),
        (BEGAN_MEANWHILE, True),
        (CAME_LATER, False),
        (UNSEEN, True),
        (BLIND_ALONE, False),
        (BLIND_AND_LAGS, True),
        (LAGS_ALONE, False),
    ],
)
def test_a_load_may_find_no_memory_when_a_game_took_it_that_could_not_be_known_of(
    around: Around, excused: bool
) -> None:
    assert around.excuses_denial(100.0, 101.0) == excused


@pytest.mark.parametrize(
    ("around", "excused"),
    [(NOBODY, False), (PLAYED_BEFORE, False), (PLAYS, True), (CAME_LATER, False)],
)
def test_a_model_may_be_refused_while_a_game_plays(around: Around, excused: bool) -> None:
    assert around.excuses_refusal(100.0, 101.0) == excused


def test_a_game_that_has_just_ended_may_not_have_been_missed_yet() -> None:
    around = Around(games=[span(50.0, 98.0)], gaps=[])

    assert around.excuses_refusal(100.0, 101.0)
    assert not around.excuses_denial(100.0, 101.0)
