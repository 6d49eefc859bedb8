import random

from scripts.soaking.gpu_plan import ROUND_S, Missing, Plan, plan

MODELS = ("a", "b")


def plans() -> list[Plan]:
    return [plan(random.Random(number), MODELS) for number in range(300)]


def test_the_same_dice_plan_the_same() -> None:
    assert plans() == plans()


def test_everything_comes_up() -> None:
    gaps = {planned.gap.how for planned in plans() if planned.gap is not None}
    games = [planned.game for planned in plans() if planned.game is not None]

    assert gaps == set(Missing)
    assert {game.plays_on for game in games} == {True, False}
    assert any(planned.game is None and planned.gap is None for planned in plans())


def test_what_begins_in_a_round_ends_after_it_began() -> None:
    for planned in plans():
        assert all(0 <= wish.at_s <= ROUND_S and wish.model in MODELS for wish in planned.wishes)
        for span in (planned.game, planned.gap):
            assert span is None or 0 <= span.at_s < span.until_s
