"""Who gets a slot, who waits and who is refused: stories that can be checked by reading, then the single promises."""

import pytest

from qmsup.core.fleet.limiter import Full, Granted, Heir, Limiter, Queued
from qmsup.errors import Code, InvariantBrokenError
from qmsup.ids import HostName, ModelId, RequestId
from qmsup.units import Seconds

BOX, OTHER_BOX = HostName("box1"), HostName("box2")
CHAT, BIG = ModelId("chat"), ModelId("big")
START = Seconds(100.0)

# Everything is about one model on one host. A line is what happens, then what comes of it:
#   size P Q      it serves P at once, Q may wait     -> who gets a slot by that, or nobody
#   a asks        a wants a slot                      -> granted | waits at PLACE | refused
#   a is tracked  a counts whatever is in flight      -> granted
#   a ends        a gives its slot back               -> who gets it, or nobody
#   a leaves      a's client has gone                 -> who gets its slot, or nobody
STORIES = {
    "nine arrivals at four slots and four places": """
        size 4 4 -> nobody
        a asks   -> granted
        b asks   -> granted
        c asks   -> granted
        d asks   -> granted
        e asks   -> waits at 1
        f asks   -> waits at 2
        g asks   -> waits at 3
        h asks   -> waits at 4
        i asks   -> refused
        """,
    "slots go out in order of arrival": """
        size 1 9 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        d asks   -> waits at 3
        a ends   -> b
        b ends   -> c
        c ends   -> d
        d ends   -> nobody
        """,
    "a second end changes nothing": """
        size 1 9 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        a ends   -> b
        a ends   -> nobody
        c asks   -> waits at 1
        b ends   -> c
        """,
    "five tracked ones over four slots: the second end hands a slot over, not the first": """
        size 4 4     -> nobody
        a is tracked -> granted
        b is tracked -> granted
        c is tracked -> granted
        d is tracked -> granted
        e is tracked -> granted
        f asks       -> waits at 1
        a ends       -> nobody
        b ends       -> f
        """,
    "tracked ones hold back the line, and it moves again": """
        size 1 9     -> nobody
        a asks       -> granted
        b asks       -> waits at 1
        t is tracked -> granted
        u is tracked -> granted
        a ends       -> nobody
        t ends       -> nobody
        u ends       -> b
        b ends       -> nobody
        """,
    "a tracked one is counted in a free slot": """
        size 1 9     -> nobody
        t is tracked -> granted
        a asks       -> waits at 1
        t ends       -> a
        """,
    "without a word from anybody one is served and nobody waits": """
        a asks -> granted
        b asks -> refused
        a ends -> nobody
        b asks -> granted
        """,
    "who leaves the line gives the place back": """
        size 1 2 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        d asks   -> refused
        b leaves -> nobody
        c asks   -> waits at 1
        d asks   -> waits at 2
        a ends   -> c
        """,
    "who leaves in the instant of the hand-over gives the slot back": """
        size 1 9 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        a ends   -> b
        b leaves -> c
        b leaves -> nobody
        b ends   -> nobody
        """,
    "more slots are handed out at once, as far as they go": """
        size 1 9 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        d asks   -> waits at 3
        size 3 9 -> b c
        size 9 9 -> d
        size 9 9 -> nobody
        """,
    "more slots help nobody while more than those are in flight": """
        size 1 9     -> nobody
        t is tracked -> granted
        u is tracked -> granted
        v is tracked -> granted
        a asks       -> waits at 1
        size 3 9     -> nobody
        size 4 9     -> a
        """,
    "fewer slots cut nobody off": """
        size 3 9 -> nobody
        a asks   -> granted
        b asks   -> granted
        c asks   -> granted
        d asks   -> waits at 1
        size 1 9 -> nobody
        a ends   -> nobody
        b ends   -> nobody
        c ends   -> d
        """,
    "fewer places send nobody away": """
        size 1 2 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        c asks   -> waits at 2
        size 1 1 -> nobody
        d asks   -> refused
        a ends   -> b
        d asks   -> refused
        b ends   -> c
        d asks   -> waits at 1
        """,
    "no slots for the time being": """
        size 0 9 -> nobody
        a asks   -> waits at 1
        size 1 9 -> a
        """,
    "who asks again hears how things stand": """
        size 1 1 -> nobody
        a asks   -> granted
        a asks   -> granted
        b asks   -> waits at 1
        b asks   -> waits at 1
        a ends   -> b
        b asks   -> granted
        c asks   -> waits at 1
        """,
    "a late end of one that waits again takes no place from it": """
        size 1 9 -> nobody
        a asks   -> granted
        b asks   -> waits at 1
        b ends   -> nobody
        a ends   -> b
        """,
    "who waited and is tracked now waits no more": """
        size 1 9     -> nobody
        a asks       -> granted
        b asks       -> waits at 1
        c asks       -> waits at 2
        b is tracked -> granted
        b is tracked -> granted
        a ends       -> nobody
        b ends       -> c
        """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_story(story: str) -> None:
    limiter = Limiter()

    for number, line in enumerate(story.strip().splitlines(), 1):
        happens, comes_of_it = (part.strip() for part in line.split("->"))
        told = _happen(limiter, happens)

        assert told == comes_of_it, f"line {number}: {happens} -> {told}; {limiter}"


def _happen(limiter: Limiter, told: str) -> str:
    match told.split():
        case ["size", parallel, queue_max]:
            size = {"parallel": int(parallel), "queue_max": int(queue_max)}
            heirs = limiter.configure(BOX, CHAT, **size, now=START)
            return " ".join(heir.request for heir in heirs) or "nobody"
        case [name, "asks"]:
            return _answer(limiter, name)
        case [name, "is", "tracked"]:
            limiter.track(RequestId(name), BOX, CHAT)
            return "granted"
        case [name, "ends"]:
            return _heir(limiter.release(RequestId(name), now=START))
        case [name, "leaves"]:
            return _heir(limiter.leave(RequestId(name), now=START))
        case _:
            raise AssertionError(told)


def _answer(limiter: Limiter, name: str) -> str:
    match limiter.acquire(RequestId(name), BOX, CHAT, now=START):
        case Granted():
            return "granted"
        case Queued(place=place):
            return f"waits at {place}"
        case Full():
            return "refused"


def _heir(heir: Heir | None) -> str:
    return "nobody" if heir is None else heir.request


def limiter_of(parallel: int, queue_max: int) -> Limiter:
    limiter = Limiter()
    limiter.configure(BOX, CHAT, parallel=parallel, queue_max=queue_max, now=START)
    return limiter


def ask(limiter: Limiter, names: str, *, at: float = 100.0, host: HostName = BOX) -> None:
    for name in names.split():
        limiter.acquire(RequestId(name), host, CHAT, now=Seconds(at))


def test_who_waited_is_told_how_long() -> None:
    limiter = limiter_of(1, 9)
    ask(limiter, "a", at=100)
    ask(limiter, "b", at=102)

    heir = limiter.release(RequestId("a"), now=Seconds(107.5))

    assert heir == Heir(request=RequestId("b"), waited=Seconds(5.5))
    again = limiter.acquire(RequestId("b"), BOX, CHAT, now=Seconds(900))
    assert again == Granted(waited=Seconds(5.5))


def test_who_got_a_slot_at_once_waited_for_nothing() -> None:
    answer = limiter_of(1, 9).acquire(RequestId("a"), BOX, CHAT, now=START)

    assert answer == Granted(waited=Seconds(0.0))


def test_a_raised_limit_tells_each_heir_how_long_it_waited() -> None:
    limiter = limiter_of(0, 9)
    ask(limiter, "a", at=100)
    ask(limiter, "b", at=103)

    heirs = limiter.configure(BOX, CHAT, parallel=2, queue_max=9, now=Seconds(104))

    assert [(heir.request, heir.waited) for heir in heirs] == [("a", 4.0), ("b", 1.0)]


def test_a_refusal_names_the_host_the_model_and_the_key_that_bounds_it() -> None:
    limiter = limiter_of(1, 1)
    ask(limiter, "a b")

    answer = limiter.acquire(RequestId("c"), BOX, CHAT, now=START)

    assert isinstance(answer, Full)
    assert answer.refusal.code is Code.QUEUE_FULL
    assert "hosts.box1.models.chat.queueMax" in answer.refusal.message


def test_pairs_do_not_take_each_others_slots() -> None:
    limiter = limiter_of(1, 9)
    ask(limiter, "a b")

    assert limiter.acquire(RequestId("c"), BOX, BIG, now=START) == Granted()
    assert limiter.acquire(RequestId("d"), OTHER_BOX, CHAT, now=START) == Granted()
    assert limiter.release(RequestId("c"), now=START) is None
    assert limiter.waiting(BOX, CHAT) == ("b",)


def test_counts_hold_tracked_ones_too() -> None:
    limiter = limiter_of(2, 9)
    limiter.track(RequestId("t"), BOX, CHAT)
    ask(limiter, "a b c")

    assert limiter.in_flight(BOX, CHAT) == 2
    assert limiter.queued(BOX, CHAT) == 2
    assert limiter.waiting(BOX, CHAT) == ("b", "c")


def test_the_free_slots_of_a_host_are_those_of_its_configured_models() -> None:
    limiter = limiter_of(4, 0)
    limiter.configure(BOX, BIG, parallel=2, queue_max=0, now=START)
    limiter.configure(OTHER_BOX, CHAT, parallel=8, queue_max=0, now=START)
    ask(limiter, "a")
    limiter.acquire(RequestId("u"), BOX, ModelId("unconfigured"), now=START)

    assert limiter.free_slots(BOX) == 3 + 2


def test_an_overfull_model_takes_no_free_slots_from_the_others() -> None:
    limiter = limiter_of(1, 0)
    limiter.configure(BOX, BIG, parallel=2, queue_max=0, now=START)
    for name in "tuv":
        limiter.track(RequestId(name), BOX, CHAT)

    assert limiter.free_slots(BOX) == 0 + 2


def test_nothing_is_free_nor_in_flight_on_an_unknown_host() -> None:
    limiter = Limiter()

    assert limiter.free_slots(BOX) == 0
    assert limiter.in_flight(BOX, CHAT) == 0
    assert limiter.queued(BOX, CHAT) == 0


def test_a_pair_that_left_the_configuration_serves_one_at_a_time_again() -> None:
    limiter = limiter_of(0, 9)
    ask(limiter, "a b")

    heirs = limiter.unconfigure(BOX, CHAT, now=START)

    assert [heir.request for heir in heirs] == ["a"]
    assert limiter.free_slots(BOX) == 0
    assert _answer(limiter, "c") == "refused"
    assert _heir(limiter.release(RequestId("a"), now=START)) == "b"


def test_pairs_that_nobody_configured_are_forgotten_when_nobody_uses_them() -> None:
    limiter = limiter_of(0, 9)
    ask(limiter, "a x", host=OTHER_BOX)
    limiter.release(RequestId("a"), now=START)
    ask(limiter, "b")
    limiter.track(RequestId("t"), BOX, BIG)
    limiter.unconfigure(BOX, BIG, now=START)
    limiter.release(RequestId("t"), now=START)

    assert repr(limiter) == "<Limiter box1/chat 0/0 +1>"
    limiter.leave(RequestId("b"), now=START)
    limiter.unconfigure(BOX, CHAT, now=START)
    assert repr(limiter) == "<Limiter idle>"


def test_it_shows_how_things_stand() -> None:
    limiter = limiter_of(2, 9)
    limiter.configure(BOX, BIG, parallel=1, queue_max=0, now=START)
    ask(limiter, "a b c")

    assert repr(limiter) == "<Limiter box1/chat 2/2 +1, box1/big 0/1>"


@pytest.mark.parametrize("size", [(-1, 0), (1, -1)])
def test_a_negative_number_is_our_bug(size: tuple[int, int]) -> None:
    with pytest.raises(InvariantBrokenError, match="box1/chat"):
        limiter_of(*size)


def test_a_request_that_is_in_two_places_at_once_is_our_bug() -> None:
    limiter = limiter_of(1, 9)
    ask(limiter, "a b")

    with pytest.raises(InvariantBrokenError, match="request b is at box1/chat"):
        limiter.acquire(RequestId("b"), OTHER_BOX, CHAT, now=START)
    with pytest.raises(InvariantBrokenError, match="request a is at box1/chat"):
        limiter.track(RequestId("a"), BOX, BIG)
