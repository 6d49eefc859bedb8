"""What a listener shows."""

import pytest

from qmsup.errors import RequestError
from qmsup.ids import ListenerName, ModelId
from qmsup.listener.catalog import Catalog
from qmsup.spec import ListenerSpec, ModelSpec, Spec
from tests.support.listener_app import AGENTS, MAIN, SPEC


def _message(catalog: Catalog, name: str) -> str:
    with pytest.raises(RequestError) as caught:
        catalog.named(name)
    return caught.value.refusal.message


def test_names_are_ids_and_aliases_of_this_listener() -> None:
    main, agents = Catalog(SPEC, MAIN), Catalog(SPEC, AGENTS)

    assert main.named("gpt-4o-mini").id == "chat"
    assert main.named("secret").id == "hidden"
    assert agents.ids() == ("coder",)
    assert "coder" in agents
    assert "chat" not in agents
    assert "no model 'chat'" in _message(agents, "chat")


def test_an_id_beats_an_alias() -> None:
    name = ListenerName("l")
    one = ModelSpec(id=ModelId("one"), argv=("x",), aliases=("two",))
    two = ModelSpec(id=ModelId("two"), argv=("x",))
    spec = Spec(models={m.id: m for m in (one, two)}, listeners={name: ListenerSpec(name=name)})

    assert Catalog(spec, name).named("two") is two


def test_unlisted_models_are_never_suggested() -> None:
    catalog = Catalog(SPEC, MAIN)

    assert "hidden" not in [m.id for m in catalog.listed()]
    assert "hidden" not in _message(catalog, "hidde")
    assert "secret" not in _message(catalog, "secre")


def test_three_names_at_most_are_suggested() -> None:
    name = ListenerName("l")
    models = [ModelSpec(id=ModelId(f"chat-{i}"), argv=("x",)) for i in range(9)]
    spec = Spec(models={m.id: m for m in models}, listeners={name: ListenerSpec(name=name)})

    assert _message(Catalog(spec, name), "CHAT").count("chat-") == 3


def test_of_very_many_names_the_likely_ones_are_compared() -> None:
    name = ListenerName("l")
    models = [ModelSpec(id=ModelId(f"coder-{i}"), argv=("x",)) for i in range(500)]
    models.append(ModelSpec(id=ModelId("chat-large"), argv=("x",)))
    spec = Spec(models={m.id: m for m in models}, listeners={name: ListenerSpec(name=name)})

    assert "did you mean chat-large?" in _message(Catalog(spec, name), "chat-larg")


def test_a_name_without_an_end_is_cut() -> None:
    assert len(_message(Catalog(SPEC, MAIN), "x" * 1_000_000)) < 300
