"""What the clients of a worker have in common."""

import logging

import pytest

from qmsup.ids import ListenerName, ModelId, RequestId
from qmsup.listener.link import Link
from qmsup.listener.relay.errands import Errands
from qmsup.listener.relay.home import Home
from qmsup.listener.relay.loop import Loop
from qmsup.listener.relay.names import Names
from qmsup.units import Seconds
from qmsup.wire import codec
from qmsup.wire.listening import Activity, Finished
from tests.support.relaying import ending_context


class Guest:
    """One who only has to be there."""

    def tick(self, now: float) -> None:
        """Nothing is due."""

    def give_up(self) -> None:
        """Nothing is held."""


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("logs", [False, True])
def test_who_is_seen_off_is_gone_and_told_of(
    caplog: pytest.LogCaptureFixture, *, logs: bool
) -> None:
    caplog.set_level(logging.INFO)
    guest = Guest()
    told = Finished(
        request=RequestId("q"), model=ModelId("m"), time=1.0, ms=2, outcome="finished", status=200
    )
    with ending_context():
        link = Link(ListenerName("main"), endpoint="ipc:///nowhere", grace=Seconds(1.0))
        loop = Loop()
        home = Home(
            loop=loop, link=link, names=Names(loop, Errands(loop)), held={guest}, access_log=logs
        )

        home.see_off(guest, told)

        (message,) = (codec.decode_from_worker(frame) for frame in link.activity.take())
        loop.close()
        link.close()
    assert isinstance(message, Activity)
    assert codec.decode_requests(message.requests) == (told,)
    assert not home.held
    assert ("request" in caplog.text) is logs
