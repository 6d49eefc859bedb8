"""Requests that would go in a circle: two apps that name each other, without a network between them."""

from dataclasses import replace
from tempfile import TemporaryFile

import pytest

from qmsup.errors import RequestError
from qmsup.ids import HostName, ListenerName, ModelId, RouteName
from qmsup.listener.circles import Circles
from qmsup.listener.relay.order import RelayOrder, Remote, Wayfaring
from qmsup.spec import ListenerSpec
from tests.support.listener_app import environ_of
from tests.support.relaying import order

_FAR = Remote(name=HostName("far"), upstream="10.0.0.2:8080")


def _circles(name: str = "main") -> Circles:
    return Circles(ListenerSpec(name=ListenerName(name)))


def _to_peer() -> RelayOrder:
    return replace(order(b"{}"), peer=_FAR)


def _via(sent: RelayOrder) -> str:
    lines = sent.head.decode().split("\r\n")
    (line,) = (line for line in lines if line.startswith("X-QM-Via: "))
    return line.removeprefix("X-QM-Via: ")


def _marked(circles: Circles, asked: RelayOrder, via: str = "") -> RelayOrder:
    return circles.marked(
        asked, environ_of("POST", "/", headers={"X-QM-Via": via} if via else None)
    )


def test_what_stays_on_this_box_has_no_mark_and_may_have_been_anywhere() -> None:
    mark = _via(_marked(_circles(), _to_peer()))
    asked = order(b"{}")

    assert _marked(_circles(), asked, mark) is asked


def test_what_comes_back_to_leave_again_is_refused_with_both_names() -> None:
    first = _via(_marked(_circles(), _to_peer()))
    second = _via(_marked(_circles("other"), _to_peer(), first))

    with pytest.raises(RequestError) as caught:
        _marked(_circles(), _to_peer(), second)

    message = caught.value.refusal.message
    assert (second.split(", ")[0], len(second.split(", "))) == (first, 2)
    assert caught.value.refusal.code == "upstream_failed"
    assert "port main (127.0.0.1:8080)" in message
    assert "peer far (10.0.0.2:8080)" in message


def test_the_body_of_what_is_refused_is_closed() -> None:
    via = _via(_marked(_circles(), _to_peer()))
    with TemporaryFile() as body:
        with pytest.raises(RequestError):
            _marked(_circles(), replace(_to_peer(), body=body), via)

        assert body.closed


def test_a_route_is_named_where_it_leads_in_a_circle() -> None:
    asked = replace(order(b"{}"), way=Wayfaring(route=RouteName("convo"), remotes={}))
    via = _via(_marked(_circles(), asked))

    with pytest.raises(RequestError, match=r"."):
        _marked(_circles(), asked, via)


def test_another_model_or_another_port_is_no_circle() -> None:
    via = _via(_marked(_circles(), _to_peer()))

    elsewhere = replace(_to_peer(), model=ModelId("x"))
    for sent in (
        _marked(_circles(), elsewhere, via),
        _marked(_circles("other"), _to_peer(), via),
    ):
        assert _via(sent).startswith(f"{via}, ")


def test_what_is_no_mark_is_left_out() -> None:
    sent = _via(_marked(_circles(), _to_peer(), "a b, , \xff, good1, x\r\ny"))

    assert sent.split(", ")[:-1] == ["good1"]
