from qmsup.core.scheduling.views import Tally, tally
from qmsup.ids import WorkerId
from tests.support.scheduling import WORKER, Desk, spec_of


def test_a_worker_has_what_waits_and_what_it_took_up() -> None:
    desk = Desk(spec_of("a", slots=1))
    assert tally(desk.scheduler.state, WORKER) == Tally(waiting=0, held=0)

    for said, waiting, held in (
        ("r1 asks a", 1, 0),
        ("r2 asks a", 2, 0),
        ("a1 ready", 2, 0),  # r1's grant is under way: the worker may not have seen it yet
        ("r1 accepts", 1, 1),
        ("r1 ends", 1, 0),
        ("r2 declines", 0, 0),
    ):
        desk.say(said)
        assert tally(desk.scheduler.state, WORKER) == Tally(waiting=waiting, held=held), said
    assert tally(desk.scheduler.state, WorkerId("w2")) == Tally(waiting=0, held=0)
