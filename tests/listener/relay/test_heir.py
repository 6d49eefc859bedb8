"""Whether it makes sense to wait for another scheduler process, and whether it has come."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.ids import Epoch, HostName, ListenerName
from qmsup.listener.link import Link
from qmsup.listener.relay.heir import Heir, heir_of
from qmsup.listener.relay.order import Remote
from qmsup.units import Seconds
from tests.support.relaying import ending_context, order


@pytest.fixture
def link(places: Path) -> Iterator[Link]:
    with ending_context():
        link = Link(ListenerName("main"), endpoint="ipc:///nowhere", grace=Seconds(5.0))
        yield link
        link.close()


def test_another_is_awaited_as_long_as_a_scheduler_is(link: Link) -> None:
    heir = Heir(link)

    assert [heir.is_awaited(now) for now in (100.0, 105.0, 105.1)] == [True, True, False]


def test_one_of_another_epoch_is_another_and_may_be_lost_as_well(link: Link) -> None:
    heir = Heir(link)
    assert heir.is_awaited(100.0)
    assert not heir.has_come()

    link.epoch = Epoch(2)

    assert heir.has_come()
    assert not heir.has_come()
    assert heir.is_awaited(200.0)


def test_only_what_is_for_the_scheduler_process_has_one(link: Link) -> None:
    job = replace(order(), via="/run/door")
    far = Remote(name=HostName("far"), upstream="far:80")

    assert heir_of(job, None, link) is not None
    assert heir_of(job, far, link) is None
    assert heir_of(order(), None, link) is None
    assert heir_of(None, None, link) is None
