from qmsup.actors.job_turns import Turns


def test_one_has_a_servers_turn_and_others_wait_in_order() -> None:
    turns = Turns[str]()

    assert turns.take("a", "first")
    assert not turns.take("a", "second")
    assert not turns.take("a", "third")
    assert turns.take("b", "fourth")

    assert [turns.end("a"), turns.end("a"), turns.end("a")] == ["second", "third", None]
    assert turns.take("a", "fifth")


def test_a_turn_may_be_had_since_a_former_life() -> None:
    turns = Turns[str]()
    turns.hold("a")
    turns.hold("a")

    assert not turns.take("a", "next")
    assert turns.end("a") == "next"


def test_all_can_be_sent_away() -> None:
    turns = Turns[str]()
    turns.take("a", "first")
    turns.take("a", "second")

    assert turns.leave() == ["second"]
    assert turns.end("a") is None
    assert turns.end("nowhere") is None
