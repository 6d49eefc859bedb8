"""What a control question wants done, and every way to ask it wrongly."""

import pytest

from qmsup.actors.answers import BadQuestionError
from qmsup.actors.gateway import Asked
from qmsup.actors.wishes import VERBS, preload, wish_of
from qmsup.core.scheduling import events as happened
from qmsup.core.scheduling.state import State
from qmsup.ids import AskId, Incarnation, LeaseId, ModelId
from qmsup.spec import ModelSpec, Spec
from qmsup.units import Seconds

ASK = AskId("q")
A = ModelId("a")
L = LeaseId("job-1")
SPEC = Spec(models={A: ModelSpec(id=A, argv=("x",), aliases=("alias",))}, listeners={})
WANTED: dict[str, tuple[dict[str, object], object, dict[str, object]]] = {
    "load": ({"model": "alias"}, happened.LoadAsked(ask=ASK, model=A), {"model": "a"}),
    "unload": (
        {"models": ["alias"], "drain": True},
        happened.UnloadAsked(ask=ASK, models=(A,), drain=True),
        {"stopped": []},
    ),
    "lease": (
        {"model": "alias", "lease": "job-1", "ttl_s": 60, "owner": "o", "purpose": "p"},
        happened.LeaseRequested(
            ask=ASK, lease=L, model=A, owner="o", purpose="p", ttl=Seconds(60.0)
        ),
        {"lease": "job-1", "model": "a"},
    ),
    "renew": (
        {"lease": "job-1", "ttl_s": 0.5},
        happened.LeaseRenewed(ask=ASK, lease=L, ttl=Seconds(0.5)),
        {"lease": "job-1"},
    ),
    "release": (
        {"lease": "job-1"},
        happened.ReleaseAsked(ask=ASK, lease=L),
        {"lease": "job-1"},
    ),
    "pin": (
        {"model": "a"},
        happened.PinAsked(ask=ASK, model=A, is_pinned=True),
        {"model": "a"},
    ),
    "unpin": (
        {"model": "a"},
        happened.PinAsked(ask=ASK, model=A, is_pinned=False),
        {"model": "a"},
    ),
    "drain": ({}, happened.DrainAsked(ask=ASK, is_draining=True), {}),
    "undrain": ({}, happened.DrainAsked(ask=ASK, is_draining=False), {}),
}
LEASE = {"model": "a", "ttl_s": 60}
WRONG: dict[str, tuple[str, dict[str, object], str]] = {
    "a lease of nothing": ("lease", {"ttl_s": 60}, 'lease: "model" must be'),
    "a lease without end": ("lease", {"model": "a"}, 'lease: "ttl_s" must be seconds'),
    "a lease of no time": ("lease", {**LEASE, "ttl_s": 0}, '"ttl_s" must be seconds, more than 0'),
    "a lease of yes": ("lease", {**LEASE, "ttl_s": True}, '"ttl_s" must be'),
    "a lease of words": ("lease", {**LEASE, "ttl_s": "60"}, '"ttl_s" must be'),
    "a lease for ever": ("lease", {**LEASE, "ttl_s": 1e300}, "at most 2592000"),
    "a lease that no clock can tell": ("lease", {**LEASE, "ttl_s": 10**400}, "at most 2592000"),
    "a lease of no number": ("lease", {**LEASE, "ttl_s": float("nan")}, "at most 2592000"),
    "a lease for a number": ("lease", {**LEASE, "purpose": 7}, '"purpose" must be text'),
    "a lease of a long story": ("lease", {**LEASE, "owner": "x" * 201}, "at most 200 letters"),
    "a lease with an empty id": ("lease", {**LEASE, "lease": ""}, '"lease" must be the id'),
    "a renewal of nothing": ("renew", {"ttl_s": 60}, 'renew: "lease" must be the id'),
    "a renewal without end": ("renew", {"lease": "x"}, 'renew: "ttl_s" must be'),
    "a release of a number": ("release", {"lease": 7}, 'release: "lease" must be'),
    "a pin of nothing": ("pin", {}, 'pin: "model" must be the name'),
}


def asked(verb: str, args: dict[str, object]) -> Asked:
    return Asked(ask=ASK, verb=verb, args=args)


@pytest.fixture
def state() -> State:
    return State(SPEC, Incarnation(1))


def test_the_list_of_verbs_is_whole() -> None:
    assert VERBS.split(", ") == list(WANTED)


@pytest.mark.parametrize("verb", WANTED)
def test_a_wish_becomes_an_event(verb: str, state: State) -> None:
    args, event, body = WANTED[verb]

    wish = wish_of(asked(verb, args), state, SPEC, Seconds(0.0))

    assert wish is not None
    assert (wish.event, wish.body) == (event, body)


def test_a_lease_without_an_id_gets_one_of_its_own(state: State) -> None:
    wishes = [wish_of(asked("lease", LEASE), state, SPEC, Seconds(0.0)) for _ in range(2)]

    assert len({wish.body["lease"] for wish in wishes if wish is not None}) == 2


def test_a_question_is_no_wish(state: State) -> None:
    assert wish_of(asked("ps", {}), state, SPEC, Seconds(0.0)) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_wish_is_refused_with_what_to_write(name: str, state: State) -> None:
    verb, args, words = WRONG[name]

    with pytest.raises(BadQuestionError, match=words):
        wish_of(asked(verb, args), state, SPEC, Seconds(0.0))


def test_what_is_to_be_preloaded_is_asked_for_in_the_order_of_the_file() -> None:
    asked: list[happened.LoadAsked] = []

    preload(Spec(models={}, preload=(ModelId("b"), A)), asked.append)

    assert [one.model for one in asked] == ["b", "a"]
    assert len({one.ask for one in asked}) == 2
