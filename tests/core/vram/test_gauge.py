"""From samples to news, told as a timeline of one card of 24000 MiB: what is used, by which child; who is resident.

    at 0 used 1500             -> ceiling 24000 free 22500
    at 2 used 9500 1:ready=400 -> ceiling 15276 free 14500 1=400, peak 1 400

A child without `=` is not seen on the card. `1 ends` is heard of between samples.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from qmsup.core.vram.attribution import Resident, Stage
from qmsup.core.vram.floor import Floor
from qmsup.core.vram.gauge import Gauge
from qmsup.core.vram.reading import Back, Changed, ChildRam, Limits, Look, News, Peak
from qmsup.core.vram.sample import Card, Ram, Sample, Use
from qmsup.ids import Incarnation
from qmsup.units import MiB, Seconds

LIMITS = Limits(budget=MiB(24000), reserve=MiB(1024), settle=Seconds(3.0))


class Story:
    """A gauge on a desk."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.gauge = Gauge()
        self.limits = limits
        self.now = 0.0

    def play(self, story: str) -> "Story":
        for line in story.strip().splitlines():
            said, _, wanted = (part.strip() for part in line.partition("->"))
            told = ", ".join(words_of(each) for each in self.say(said))
            assert told == wanted, f"{said} -> {told}\nand not -> {wanted}"
        return self

    def say(self, words: str) -> list[News]:
        match words.split():
            case [child, "ends"]:
                self.gauge.ended(Incarnation(int(child)), self.limits, Seconds(self.now))
                return []
            case ["budget", budget]:
                self.limits = replace(self.limits, budget=MiB(int(budget)))
                return self.gauge.limit(self.limits)
            case ["at", now, "failed"]:
                self.now = float(now)
                look = Look(trouble="the driver is gone")
            case ["at", now, "used", used, *children]:
                self.now = float(now)
                look = look_of(used, children)
            case _:
                raise AssertionError(words)
        return self.gauge.take(look, self.limits, Seconds(self.now))


def look_of(used: str, children: list[str]) -> Look:
    uses, residents, owners = list[Use](), list[Resident](), dict[int, Incarnation]()
    for word in children:
        child, _, told = word.partition(":")
        stage, _, size = told.partition("=")
        residents.append(
            Resident(incarnation=Incarnation(int(child)), stage=Stage(stage), size=MiB(9000))
        )
        if size:
            pid = 100 + int(child)
            owners[pid] = Incarnation(int(child))
            uses.append(Use(pid=pid, card="u1", used=MiB(int(size))))
    card = Card(uuid="u1", name="card", total=MiB(24000), used=MiB(int(used)), has_processes=True)
    return Look(
        sample=Sample(cards=(card,), uses=tuple(uses)), residents=tuple(residents), owners=owners
    )


def words_of(news: News) -> str:
    match news:
        case Changed(reading=reading) if reading.is_trusted:
            held = "".join(f" {child}={size}" for child, size in reading.held.items())
            return f"ceiling {reading.ceiling} free {reading.free}{held}"
        case Changed():
            return "blind"
        case Back(incarnation=child, returned=returned, free=free):
            held = "".join(f" {child}={size}" for child, size in news.held.items())
            return f"back {child} {returned} free {free}{held}"
        case Peak(incarnation=child, held=held):
            return f"peak {child} {held}"


STORIES = {
    "who ended while nothing could be told apart has given back before a reading counts": """
        at 0 used 1500                -> ceiling 24000 free 22500
        at 2 used 6500 1:ready=5000   -> peak 1 5000, ceiling 24000 free 17500 1=5000
        at 3 used 6500 1:ready        -> blind
        1 ends
        at 3.2 used 9500 2:starting   ->
        2 ends
        at 3.4 used 9500              ->
        at 3.6 used 4500              ->
        at 3.8 used 1500              -> ceiling 24000 free 22500
        """,
    "what does not come back of them in time is somebody else's": """
        at 0 used 1500                -> ceiling 24000 free 22500
        at 2 used 6500 1:ready=5000   -> peak 1 5000, ceiling 24000 free 17500 1=5000
        at 3 used 6500 1:ready        -> blind
        1 ends
        at 5.9 used 6500              ->
        at 6 used 6500                -> ceiling 17976 free 17500
        """,
    "who ended in time for that is no reason to be blind": """
        at 0 used 1500                -> ceiling 24000 free 22500
        at 2 used 6500 1:ready=5000   -> peak 1 5000, ceiling 24000 free 17500 1=5000
        at 3 used 6500 1:ready        -> blind
        1 ends
        at 4 used 1500                -> ceiling 24000 free 22500
        """,
    "who died before it was seen may have taken what it was to take": """
        at 0 used 1500                -> ceiling 24000 free 22500
        at 1 used 1500 1:starting     ->
        1 ends
        at 1.1 used 9500              -> ceiling 24000 free 14500
        at 1.3 used 1500              -> ceiling 24000 free 22500
        """,
    "a game takes 8000": """
        at 0 used 1500  -> ceiling 24000 free 22500
        at 2 used 9500  -> ceiling 14976 free 14500
        at 4 used 1500  -> ceiling 24000 free 22500
        """,
    "jitter is not told, unless it adds up": """
        at 0 used 1500  -> ceiling 24000 free 22500
        at 2 used 1520  ->
        at 4 used 1531  ->
        at 6 used 1532  -> ceiling 24000 free 22468
        """,
    "the floor survives a sample that cannot be trusted": """
        at 0 used 1500  -> ceiling 24000 free 22500
        at 2 used 9500  -> ceiling 14976 free 14500
        at 4 failed     -> blind
        at 6 failed     ->
        at 8 used 9500  -> ceiling 14976 free 14500
        """,
    "a full card of our own models keeps its budget": """
        at 0 used 1500                              -> ceiling 24000 free 22500
        at 2 used 23500 1:ready=9000 2:ready=13000 -> peak 1 9000, peak 2 13000, ceiling 24000 free 500 1=9000 2=13000
        """,
    "a child that loads and is not seen yet leaves the last reading in force, for a while": """
        at 0 used 1500                    -> ceiling 24000 free 22500
        at 2 used 1800 1:starting         ->
        budget 20000                      ->
        at 2.2 used 2000 1:starting=500   -> ceiling 20000 free 22000 1=500
        at 2.4 used 2500 1:starting=1000  -> ceiling 20000 free 21500 1=1000
        at 2.6 used 2500 1:ready=1000     -> peak 1 1000
        at 4.6 used 2500 1:ready=1000     ->
        at 6.6 used 2501 1:ready=1001     -> peak 1 1001
        """,
    "but not for long": """
        at 0 used 1500               -> ceiling 24000 free 22500
        at 2 used 1500 1:starting    ->
        at 6.9 used 1500 1:starting  ->
        at 7 used 1500 1:starting    -> blind
        at 9 used 1500               -> ceiling 24000 free 22500
        """,
    "a ready child that is not seen ends all trust": """
        at 0 used 1500          -> ceiling 24000 free 22500
        at 2 used 9500 1:ready  -> blind
        at 4 used 9500 1:ready  ->
        """,
    "the memory of the dead comes back and is not foreign": """
        at 0 used 1500                 -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000  -> peak 1 10000, ceiling 24000 free 12500 1=10000
        1 ends                         ->
        at 2.2 used 11500              -> ceiling 24000 free 12500
        at 2.4 used 4000               -> back 1 7500 free 20000
        at 2.6 used 1500               -> back 1 10000 free 22500
        at 2.8 used 1500               ->
        """,
    "what has not come back in time is somebody else's": """
        at 0 used 1500                 -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000  -> peak 1 10000, ceiling 24000 free 12500 1=10000
        1 ends                         ->
        at 4.9 used 11500              -> ceiling 24000 free 12500
        at 5 used 11500                -> ceiling 12976 free 12500
        """,
    "one that stops gives its memory up before its end is heard of": """
        at 0 used 1500                   -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000    -> peak 1 10000, ceiling 24000 free 12500 1=10000
        at 2.2 used 11500 1:stopping     ->
        at 2.4 used 6500 1:stopping      -> ceiling 24000 free 17500 1=5000
        1 ends                           ->
        at 2.6 used 2500                 -> back 1 4000 free 21500, ceiling 24000 free 21500
        at 2.8 used 1500                 -> back 1 5000 free 22500
        """,
    "one that stops and is seen again holds its own": """
        at 0 used 1500                       -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000        -> peak 1 10000, ceiling 24000 free 12500 1=10000
        at 2.2 used 11500 1:stopping         ->
        at 2.4 used 11500 1:stopping=10000   ->
        """,
    "what comes back while another starts is told": """
        at 0 used 1500                              -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000                -> peak 1 10000, ceiling 24000 free 12500 1=10000
        1 ends                                       ->
        at 2.2 used 1700 2:starting                  -> back 1 9800 free 22300
        at 2.4 used 1800 2:starting=300              -> back 1 10000 free 22200 2=300, ceiling 24000 free 22200 2=300
        """,
    "a card and its processes that are read at two moments do not lower the floor": """
        at 0 used 1500                       -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000        -> peak 1 10000, ceiling 24000 free 12500 1=10000
        at 2.2 used 1500 1:stopping=10000    ->
        1 ends                               ->
        at 2.4 used 1500                     -> back 1 10000 free 22500, ceiling 24000 free 22500
        at 4.4 used 1500                     ->
        """,
    "nor does a child that dies unasked between two reads": """
        at 0 used 1500                       -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000        -> peak 1 10000, ceiling 24000 free 12500 1=10000
        at 4 used 1500 1:ready=10000         ->
        1 ends                               ->
        at 4.2 used 1500                     -> back 1 10000 free 22500, ceiling 24000 free 22500
        at 8 used 1500                       ->
        """,
    "nor one that does so while another's memory is on its way back": """
        at 0 used 1500                            -> ceiling 24000 free 22500
        at 2 used 6500 1:ready=2000 2:ready=3000  -> peak 1 2000, peak 2 3000, ceiling 24000 free 17500 1=2000 2=3000
        1 ends                                    ->
        at 2.2 used 6500 2:ready=3000             -> ceiling 24000 free 17500 2=3000
        at 2.4 used 3500 2:ready=3000             -> back 1 2000 free 20500 2=3000
        2 ends                                    ->
        at 2.6 used 3500                          -> ceiling 24000 free 20500
        at 2.8 used 3500                          ->
        at 3 used 1500                            -> back 2 2000 free 22500
        at 5.7 used 1500                          ->
        """,
    "nor does a driver that tells more of a child than of its card": """
        at 0 used 1500                       -> ceiling 24000 free 22500
        at 2 used 11500 1:ready=10000        -> peak 1 10000, ceiling 24000 free 12500 1=10000
        at 4 used 11500 1:ready=30000        ->
        at 6 used 31500 1:ready=30000        ->
        at 9 used 11500 1:ready=30000        -> blind
        at 11 used 11500 1:ready=10000       -> ceiling 24000 free 12500 1=10000
        """,
    "one that dies while it loads may have taken more than was seen": """
        at 0 used 1500                    -> ceiling 24000 free 22500
        at 2 used 5500 1:starting=4000    -> ceiling 24000 free 18500 1=4000
        1 ends                            ->
        at 2.2 used 7500                  -> ceiling 24000 free 16500
        at 2.4 used 2500                  -> back 1 3000 free 21500
        """,
    "so may one that is given up": """
        at 0 used 1500                    -> ceiling 24000 free 22500
        at 2 used 5500 1:starting=4000    -> ceiling 24000 free 18500 1=4000
        at 2.2 used 7500 1:stopping       -> ceiling 24000 free 16500 1=6000
        1 ends                            ->
        at 2.4 used 2500                  -> back 1 5000 free 21500, ceiling 24000 free 21500
        """,
    "one that was ready has taken all it takes": """
        at 0 used 1500                    -> ceiling 24000 free 22500
        at 2 used 5500 1:starting=4000    -> ceiling 24000 free 18500 1=4000
        at 2.2 used 5500 1:ready=4000     -> peak 1 4000
        1 ends                            ->
        at 2.4 used 7500                  -> ceiling 24000 free 16500
        at 2.6 used 7500                  -> ceiling 20976 free 16500
        """,
    "nor does what a child takes between two reads raise what others use": """
        at 0 used 1500                    -> ceiling 24000 free 22500
        at 2 used 1600 1:starting=100     -> ceiling 24000 free 22400 1=100
        at 2.2 used 4000 1:starting=2000  -> ceiling 24000 free 20000 1=2000
        at 2.4 used 6500 1:starting=5000  -> ceiling 24000 free 17500 1=5000
        at 2.6 used 8500 1:starting=5000  -> ceiling 20976 free 15500 1=5000
        """,
    "another budget counts at once": """
        budget 20000    ->
        at 0 used 1500  -> ceiling 20000 free 22500
        budget 22000    -> ceiling 22000 free 22500
        budget 22000    ->
        """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_story(story: str) -> None:
    Story().play(story)


def test_a_floor_that_was_learnt_before_is_not_lowered_by_the_first_look() -> None:
    story = Story()
    story.gauge = Gauge(Floor(lowest={frozenset({"u1"}): MiB(1500)}))

    story.play("""
        at 0 used 9500 1:ready=9000  -> peak 1 9000, ceiling 24000 free 14500 1=9000
        1 ends                       ->
        at 0.2 used 9500             -> ceiling 24000 free 14500
        at 3 used 9500               -> ceiling 14976 free 14500
        at 5 used 1000               -> ceiling 24000 free 23000
        at 7 used 1000               ->
        at 9 used 9500               -> ceiling 14476 free 14500
        """)


def test_without_a_budget_there_is_all_of_the_cards() -> None:
    Story(Limits(reserve=MiB(0))).play("""
        at 0 used 1500  -> ceiling 24000 free 22500
        at 2 used 9500  -> ceiling 16000 free 14500
        """)


def test_a_reading_shows_all_that_it_is_made_of() -> None:
    story = Story()
    story.say("at 0 used 1500")
    assert (story.gauge.reading.foreign, story.gauge.reading.floor) == (1500, 1500)

    story.say("at 2 used 9500 1:ready=400")
    assert story.gauge.reading.foreign == 8700  # some of it may be the child's, which moves
    story.say("at 4 used 9500 1:ready=400")

    reading = story.gauge.reading
    assert (reading.total, reading.used, reading.free) == (24000, 9500, 14500)
    assert (reading.foreign, reading.floor) == (9100, 1500)
    assert (reading.ceiling, reading.shed_line) == (15376, 16912)
    assert [(share.ours, share.others) for share in reading.shares] == [(400, 9100)]


def test_what_was_read_of_one_that_cannot_be_trusted_is_shown_and_why() -> None:
    story = Story()
    story.say("at 0 used 9500 1:ready")

    reading = story.gauge.reading
    assert (reading.total, reading.used, reading.free) == (24000, 9500, 14500)
    assert (reading.foreign, reading.ceiling, reading.held) == (None, None, {})
    assert reading.because == "not seen on any card: child 1"
    assert [(share.card.used, share.ours, share.others) for share in reading.shares] == [
        (9500, None, None)
    ]

    story.say("at 2 failed")

    assert story.gauge.reading.total is None
    assert story.gauge.reading.because == "the driver is gone"


def test_it_knows_whether_memory_is_on_its_way_back() -> None:
    story = Story()
    for words in ("at 0 used 1500", "at 2 used 11500 1:ready=10000", "1 ends"):
        assert not story.gauge.is_settling
        story.say(words)
    assert story.gauge.is_settling

    story.say("at 5 failed")

    assert not story.gauge.is_settling


CHILD = Resident(incarnation=Incarnation(1), stage=Stage.READY, is_on_gpu=False)


def ram_look(available: int | None, private: int) -> Look:
    ram = None if available is None else Ram(total=MiB(64000), available=MiB(available))
    used = ChildRam(resident=MiB(private + 7), private=MiB(private))
    return Look(sample=Sample(ram=ram), residents=(CHILD,), ram={CHILD.incarnation: used})


def ram_ceilings(limits: Limits, *looks: tuple[int | None, int]) -> Iterator[int | None]:
    """What is told of each look; -1 = nothing."""
    gauge = Gauge()
    for now, look in enumerate(looks):
        news = gauge.take(ram_look(*look), limits, Seconds(float(now)))
        assert gauge.reading.ram[CHILD.incarnation].private == look[1]
        yield next((n.reading.ram_ceiling for n in news if isinstance(n, Changed)), -1)


def test_the_ram_has_a_ceiling_where_there_is_a_budget_for_it() -> None:
    looks = [(60000, 0), (20000, 5000), (19900, 5000), (19000, 5000), (None, 5000), (60000, 0)]

    gauge = Gauge()
    gauge.take(ram_look(20000, 5000), Limits(), Seconds(0.0))
    (told,) = gauge.limit(Limits(ram_budget=MiB(32000)))
    assert isinstance(told, Changed)
    assert told.reading.ram_ceiling == 25000

    budgeted = [*ram_ceilings(Limits(ram_budget=MiB(32000)), *looks)]

    assert budgeted == [32000, 25000, -1, 24000, None, 32000]
    assert [*ram_ceilings(Limits(), *looks)] == [-1] * 6
