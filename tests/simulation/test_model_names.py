"""Names that a configuration does not know are told as what they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from qmsup.ids import HostName, ModelId
from qmsup.simulation.model_names import what_is_wrong, why_unknown
from qmsup.spec import ModelSpec, PeerSpec, Spec

FAR = HostName("far")
CHAT = ModelSpec(id=ModelId("chat"), argv=("child",), aliases=("gpt-4o",))


def spec(*names: str) -> Spec:
    more = {ModelId(name): replace(CHAT, id=ModelId(name), aliases=()) for name in names}
    peer = PeerSpec(name=FAR, upstream="far:1", models=(ModelId("big"),))
    return Spec(models={CHAT.id: CHAT, **more}, peers={FAR: peer})


@pytest.mark.parametrize("name", ["chat", "gpt-4o"])
def test_with_a_model_that_is_configured_nothing_is_wrong(name: str) -> None:
    assert why_unknown(name, spec()) is None


@pytest.mark.parametrize(
    ("name", "why"),
    {
        "caht": "no model 'caht' is configured; did you mean 'chat'?",
        "gpt4o": "no model 'gpt4o' is configured; did you mean 'gpt-4o'?",
        "CHAT": "no model 'CHAT' is configured; did you mean 'chat'?",
        "zzz": "no model 'zzz' is configured; there are chat",
        "big": "'big' is the peer far's, and no scheduler of this box decides about it",
    }.items(),
)
def test_a_name_that_is_none_is_told_as_what_it_is(name: str, why: str) -> None:
    assert why_unknown(name, spec()) == why


def test_of_many_models_a_dozen_are_named() -> None:
    many = spec(*(f"m{number}" for number in range(30)))

    assert str(why_unknown("zzz", many)).endswith("m9, m10 and 19 more")
    assert str(why_unknown("zzz", Spec(models={}))).endswith("there are none")


def test_of_several_configurations_the_first_that_lacks_it_is_named() -> None:
    specs = {Path("a.yaml"): spec("code"), Path("b.yaml"): spec()}

    assert what_is_wrong("chat", specs) is None
    assert str(what_is_wrong("code", specs)).endswith("(in b.yaml)")
