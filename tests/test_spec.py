from qmsup.ids import ListenerName, ModelId
from qmsup.spec import GroupSpec, KeySpec, ListenerSpec, ModelSpec, Spec

CHAT = ModelSpec(id=ModelId("chat"), argv=("x",), aliases=("gpt-4o", "coder"))
CODER = ModelSpec(id=ModelId("coder"), argv=("x",))
OTHER = ModelSpec(id=ModelId("other"), argv=("x",))
SPEC = Spec(
    models={model.id: model for model in (CHAT, CODER, OTHER)},
    groups=(
        GroupSpec(id="talk", members=(OTHER.id, CHAT.id)),
        GroupSpec(id="code", members=(CODER.id,)),
    ),
)


def test_a_model_is_found_by_id_before_any_alias() -> None:
    assert SPEC.model_named("gpt-4o") is CHAT
    assert SPEC.model_named("coder") is CODER
    assert SPEC.model_named("nobody") is None


def test_a_listener_shows_its_groups_in_the_order_of_the_file() -> None:
    everything = ListenerSpec(name=ListenerName("main"))
    talk = ListenerSpec(name=ListenerName("talk"), groups=("talk",))

    assert SPEC.shown_on(everything) == (CHAT, CODER, OTHER)
    assert SPEC.shown_on(talk) == (CHAT, OTHER)


def test_keys_are_not_shown_when_a_listener_is_printed() -> None:
    key = KeySpec(key="sk-secret")

    assert "sk-secret" not in repr(ListenerSpec(name=ListenerName("main"), api_keys=(key,)))
