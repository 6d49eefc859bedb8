"""A name that no model of this box has is told as what it is."""

import pytest

from qmsup.core.scheduling.effects import Answer
from qmsup.core.scheduling.unknown import peer_of, unknown_model
from qmsup.errors import Code
from qmsup.ids import HostName, ModelId, RouteName
from qmsup.spec import PeerSpec, RouteSpec, Spec
from tests.support.scheduling import Desk, spec_of

FAR = HostName("far")
CONVO = RouteName("convo")


def spec() -> Spec:
    peer = PeerSpec(name=FAR, upstream="far:8080", models=(ModelId("big"), ModelId("a/b")))
    route = RouteSpec(name=CONVO, hosts=(HostName("local"),))
    return spec_of("small convoy", peers={FAR: peer}, routes={CONVO: route})


@pytest.mark.parametrize("name", ["big", "far/big", "a/b", "far/a/b"])
def test_a_peers_model_has_a_peer_by_either_of_its_names(name: str) -> None:
    assert peer_of(spec(), name) == FAR


@pytest.mark.parametrize("name", ["", "far", "far/", "far/small", "b", "small"])
def test_others_have_none(name: str) -> None:
    assert peer_of(spec(), name) is None


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "big": "there is no model 'big' on this box: it is the peer far's, which loads and stops it; ask there",
        "convo": "there is no model 'convo': it is a route; name a model that it leads to",
        "smalx": "there is no model 'smalx'; did you mean 'small'?",
        "SMALL": "there is no model 'SMALL'; did you mean 'small'?",
        "zzz": "there is no model 'zzz'",
    }.items(),
)
def test_whoever_names_it_is_told_whose_it_is_or_what_reads_alike(name: str, said: str) -> None:
    refusal = unknown_model(Desk(spec()).scheduler.state, ModelId(name))

    assert (refusal.code, refusal.message) == (Code.MODEL_NOT_FOUND, said)


@pytest.mark.parametrize("wish", ["load l big", "pin p big", "unload u big", "lease x l big"])
def test_every_wish_about_a_peers_model_is_answered_so(wish: str) -> None:
    desk = Desk(spec())

    desk.say(wish)

    (refusal,) = (each.refusal for each in desk.effects if isinstance(each, Answer))
    assert refusal is not None
    assert "it is the peer far's" in refusal.message
