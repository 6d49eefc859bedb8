from qmsup.actors import askers
from qmsup.actors.askers import Askers, Replies
from qmsup.ids import AskId

ANN, BOB = b"ann", b"bob"


def asked(known: Askers, client: bytes, count: int, first: int = 0) -> list[str]:
    return [
        known.add(AskId(f"{client.decode()}:{n}"), client, str(n))
        for n in range(first, first + count)
    ]


def test_a_question_is_known_until_it_is_answered() -> None:
    known = Askers()
    assert known.add(AskId("a:1"), ANN, "1") == ""
    assert known.hear_again(AskId("a:1"))

    answered = known.pop(AskId("a:1"))

    assert answered is not None
    assert (answered.client, answered.question_id) == (ANN, "1")
    assert not known.hear_again(AskId("a:1"))
    assert known.pop(AskId("a:1")) is None
    assert len(known) == 0


def test_a_client_that_floods_leaves_room_for_others() -> None:
    known = Askers()

    told = asked(known, ANN, askers.MOST_OF_ONE + 1)

    assert told[:-1] == [""] * askers.MOST_OF_ONE
    assert "of this client wait for an answer already" in told[-1]
    assert asked(known, BOB, 1) == [""]


def test_what_is_answered_or_given_up_makes_room() -> None:
    known = Askers()
    asked(known, ANN, askers.MOST_OF_ONE)

    known.pop(AskId("ann:0"))
    assert asked(known, ANN, 2, first=5000)[0] == ""

    assert known.vanished() == []
    assert len(known.vanished()) == askers.MOST_OF_ONE
    assert asked(known, ANN, 1) == [""]


def test_many_clients_together_are_bounded_too() -> None:
    known = Askers()
    told = [known.add(AskId(f"{n}:1"), b"%d" % n, "1") for n in range(askers.MOST + 1)]

    assert set(told[:-1]) == {""}
    assert "ask again later" in told[-1]
    assert len(known) == askers.MOST


def test_who_repeats_its_question_has_not_vanished() -> None:
    known = Askers()
    asked(known, ANN, 2)
    known.vanished()

    known.hear_again(AskId("ann:1"))

    assert known.vanished() == [AskId("ann:0")]


def test_answers_are_kept_until_newer_ones_take_their_place() -> None:
    kept = Replies()
    for n in range(300):
        kept.keep(AskId(str(n)), b"answer")

    assert kept.get(AskId("299")) == b"answer"
    assert kept.get(AskId("0")) is None


def test_large_answers_take_the_place_of_more() -> None:
    kept = Replies()
    for n in range(3):
        kept.keep(AskId(str(n)), bytes(5 * 1024 * 1024))

    assert kept.get(AskId("1")) is None
    assert kept.get(AskId("2")) is not None
