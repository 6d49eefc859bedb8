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


def test_who_wants_no_turn_any_more_leaves_the_order_to_others() -> None:
    turns = Turns[str]()
    for server in ("a", "b"):
        for who in ("first", "second", "third", "fourth"):
            turns.take(server, f"{who} {server}")

    assert turns.withdraw(lambda who: who.startswith("second")) == ["second a", "second b"]

    assert [turns.end("a") for _ in range(3)] == ["third a", "fourth a", None]
    assert turns.end("b") == "third b"


def test_all_can_be_sent_away() -> None:
    turns = Turns[str]()
    turns.take("a", "first")
    turns.take("a", "second")

    assert turns.leave() == ["second"]
    assert turns.end("a") is None
    assert turns.end("nowhere") is None
