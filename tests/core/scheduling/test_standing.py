"""What a next life of the scheduler is told."""

from qmsup.core.scheduling.events import ListenerJoined
from qmsup.core.scheduling.standing import Standing, StandingJob, StandingWorker, standing_of
from qmsup.ids import LeaseId, ListenerName, ModelId, WorkerId
from qmsup.spec import SchedulerSpec
from qmsup.units import Seconds
from tests.support.scheduling import Desk, spec_of


def test_of_a_box_that_has_just_begun_there_is_nothing_to_tell() -> None:
    assert standing_of(Desk(spec_of("a b")).scheduler.state) == Standing()


def test_workers_jobs_the_order_of_use_holds_pins_and_draining_are_told() -> None:
    scheduler = SchedulerSpec(hold=Seconds(10.0))
    desk = Desk(spec_of("a b c", scheduler=scheduler), evicts={})
    desk.tell(ListenerJoined(listener=WorkerId("w1"), name=ListenerName("main"), pid=77))
    desk.play("""
        r1 asks b          -> load b1, loading r1
        b1 ready           -> grant r1
        r1 accepts         ->
        r2 asks a          -> load a2, loading r2
        a2 ready           -> grant r2
        r2 ends tool_calls ->
        lease x j1 b 60    -> answer x done
        pin y c            -> answer y done
        """)

    assert standing_of(desk.scheduler.state) == Standing(
        workers=(StandingWorker(worker=WorkerId("w1"), pid=77),),
        jobs=(
            StandingJob(
                lease=LeaseId("j1"),
                model=ModelId("b"),
                owner="tester",
                purpose="a render",
                until=Seconds(60.0),
            ),
        ),
        order=(ModelId("a"), ModelId("b")),
        holds=((ModelId("a"), Seconds(10.0)),),
        pins=(ModelId("c"),),
    )

    desk.play("close z -> answer z done")
    assert standing_of(desk.scheduler.state).is_draining
