"""What `/v1/models` tells of a model."""

import json

from qmsup.ids import ModelId, RouteName
from qmsup.listener.records import Record, record_of, record_of_alias, record_of_route
from qmsup.spec import Abilities, ModelSpec

CHAT = ModelId("chat")


def told(*, is_loaded: bool | None = None, **keys: object) -> Record:
    model = ModelSpec(id=CHAT, argv=("x",), **keys)  # type: ignore[arg-type]  # a test's shorthand
    return record_of(model, created=7, owner="qmsup", is_loaded=is_loaded)


def test_a_model_of_which_nothing_is_said_has_openais_fields() -> None:
    assert told() == {
        "id": "chat",
        "object": "model",
        "created": 7,
        "owned_by": "qmsup",
        "meta": {"llamaswap": {"type": "model"}},
    }


def test_name_description_and_state_are_told() -> None:
    record = told(name="Chat", description="talks", is_loaded=True)

    assert (record["name"], record["description"]) == ("Chat", "talks")
    assert record["status"] == {"value": "loaded"}
    assert told(is_loaded=False)["status"] == {"value": "unloaded"}


def test_abilities_are_told_as_clients_read_them() -> None:
    record = told(
        abilities=Abilities(
            takes=("text", "image", "audio"),
            gives=("text",),
            tools=True,
            reranker=True,
            context=32000,
        )
    )

    assert record["architecture"] == {
        "input_modalities": ["text", "image", "audio"],
        "output_modalities": ["text"],
        "modality": "text+image+audio->text",
    }
    assert record["capabilities"] == {
        "vision": True,
        "audio_transcriptions": True,
        "function_calling": True,
        "reranker": True,
    }
    assert record["supported_parameters"] == ["tools", "tool_choice"]
    assert record["context_length"] == 32000
    assert record["meta"] == {"llamaswap": {"type": "model"}, "n_ctx": 32000}


def test_a_painter_paints() -> None:
    record = told(abilities=Abilities(takes=("text", "image"), gives=("image",)))

    assert record["capabilities"] == {
        "vision": True,
        "image_generation": True,
        "image_to_image": True,
    }


def test_one_side_alone_is_told_alone() -> None:
    assert told(abilities=Abilities(gives=("audio",)))["architecture"] == {
        "output_modalities": ["audio"]
    }
    assert told(abilities=Abilities(takes=("text",)))["capabilities"] == {}


def test_metadata_is_told_but_for_what_is_told_already() -> None:
    metadata = json.dumps({"note": ["x", 1], "type": "mine", "context_length": 5})

    plain = told(metadata=metadata, aliases=("gpt",))
    able = told(metadata=metadata, abilities=Abilities(context=9))

    assert plain["meta"] == {
        "llamaswap": {"note": ["x", 1], "type": "model", "context_length": 5, "aliases": ["gpt"]}
    }
    assert able["meta"] == {"llamaswap": {"note": ["x", 1], "type": "model"}, "n_ctx": 9}


def test_an_alias_is_told_as_its_model_but_for_its_name() -> None:
    model = ModelSpec(id=CHAT, argv=("x",), name="Chat", aliases=("gpt",), metadata='{"a": 1}')
    record = record_of(model, created=7, owner="qmsup", is_loaded=True)

    assert record_of_alias("gpt", model, record) == {
        **record,
        "id": "gpt",
        "meta": {"llamaswap": {"a": 1, "type": "alias", "modelID": "chat"}},
    }


def test_a_route_is_told_as_the_model_it_stands_for_but_for_what_is_the_host_s() -> None:
    model = ModelSpec(id=CHAT, argv=("x",), name="Chat", aliases=("gpt",), metadata='{"a": 1}')
    record = record_of(model, created=7, owner="qmsup", is_loaded=True)

    assert record_of_route(RouteName("r"), CHAT, record) == {
        "id": "r",
        "object": "model",
        "created": 7,
        "owned_by": "qmsup",
        "meta": {"llamaswap": {"a": 1, "type": "route", "modelID": "chat"}},
    }
    assert record_of_route(RouteName("r"), CHAT, {})["id"] == "r"
