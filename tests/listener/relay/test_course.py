import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from qmsup.ids import HostName, ListenerName, RouteName
from qmsup.listener.link import Link
from qmsup.listener.relay.asks import ask_of
from qmsup.listener.relay.course import Course
from qmsup.listener.relay.order import RelayOrder, Remote, Wayfaring
from qmsup.units import Seconds
from qmsup.wire.listening import Granted
from tests.support.granting import grant
from tests.support.relaying import ending_context, order

FAR = HostName("far")
REMOTE = Remote(name=FAR, upstream="far.example:80", path=b"/api")


@pytest.fixture
def link(places: Path) -> Iterator[Link]:
    with ending_context():
        link = Link(ListenerName("main"), endpoint="ipc:///nowhere", grace=Seconds(5.0))
        yield link
        link.close()


def _routed() -> RelayOrder:
    return replace(order(b"{}"), way=Wayfaring(route=RouteName("r"), remotes={FAR: REMOTE}))


def _to(course: Course, host: str = "local") -> Granted:
    assert course.order is not None
    granted = grant(ask_of(course.order), "127.0.0.1:1")
    return msgspec.structs.replace(granted, host=host)


def test_a_host_is_tried_twice(link: Link) -> None:
    course = Course(order(b"abc"))
    course.granted(_to(course), link)

    turns = []
    while course.may_try_again:
        assert course.begin() is not None
        turns.append(course.turn)

    assert turns == [0, 1]
    course.begin_anew()
    assert course.may_try_again


def test_where_to_connect_is_the_host_or_a_socket_of_this_box(link: Link) -> None:
    plain, via, routed = Course(order()), Course(replace(order(), via="/door")), Course(_routed())
    plain.granted(_to(plain), link)
    via.granted(_to(via), link)
    routed.granted(_to(routed, FAR), link)

    assert [course.door for course in (plain, via, routed)] == [
        "127.0.0.1:1",
        "/door",
        "127.0.0.1:1",
    ]
    assert [course.remote for course in (plain, via, routed)] == [None, None, REMOTE]
    assert [course.heir is None for course in (plain, via, routed)] == [True, False, True]


def test_a_request_is_kept_until_nobody_needs_it_again(link: Link) -> None:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed by what is tested
    plain, routed = Course(order(file, length=0)), Course(_routed())

    plain.sent()
    routed.sent()

    assert plain.order is None
    assert file.closed
    assert plain.begin() is None
    assert routed.order is not None
    routed.drop()
    assert routed.order is None


def test_only_a_route_leads_on_and_what_was_never_heard_is_asked_for_once_more(link: Link) -> None:
    plain, routed = Course(order()), Course(_routed())
    for course, host in ((plain, "local"), (routed, FAR)):
        course.granted(_to(course, host), link)

    assert [plain.leads_on(is_unheard=unheard) for unheard in (False, True)] == [False, True]
    assert [routed.leads_on(is_unheard=unheard) for unheard in (False, True)] == [True, True]

    plain.ask_on(Seconds(1.5))
    again = routed.ask_on(Seconds(1.5)).routed

    assert again is not None
    assert again.tried == (FAR,)
    assert not plain.leads_on(is_unheard=True)
    plain.drop()
    assert not plain.leads_on(is_unheard=True)


def test_what_has_not_begun_is_asked_for_anew_a_few_times(link: Link) -> None:
    course = Course(_routed())
    asks = []
    for _ in range(4):
        course.granted(_to(course, FAR), link)
        course.begin()
        asks.append(course.ask_anew(Seconds(1.5)))

    assert course.order is not None
    assert asks == [ask_of(course.order, waited=Seconds(1.5))] * 3 + [None]


def test_what_was_counted_once_is_told_with_each_question(link: Link) -> None:
    course = Course(_routed())
    course.granted(_to(course, FAR), link)

    asks = [
        course.ask_counted(7, Seconds(0.5)),
        course.ask_anew(Seconds(0.5)),
        course.ask_on(Seconds(0.5)),
    ]

    for ask in asks:
        assert ask is not None
        assert ask.routed is not None
        assert (ask.waited_ms, ask.routed.is_counted, ask.routed.tokens) == (500, True, 7)
    course.drop()
    assert course.ask_counted(7, Seconds(0.5)) is None


def test_what_has_begun_is_not(link: Link) -> None:
    course, over = Course(order()), Course(order())
    course.granted(_to(course), link)
    sending = course.begin()
    assert sending is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sending.go_on(ours)

    over.drop()

    assert course.ask_anew(Seconds(0.0)) is None
    assert over.ask_anew(Seconds(0.0)) is None
