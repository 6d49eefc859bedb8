"""The JSON Schema of a configuration, for editors and other programs."""

from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import override

from qmsup.config.model_shape import ModelSection
from qmsup.config.shape import Shape

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Without titles, which would only repeat the keys."""

    @override
    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of the whole file, made from the same models that check it."""
    schema: dict[str, object] = Shape.model_json_schema(schema_generator=_Generator)
    places = schema["$defs"]
    if isinstance(places, dict):
        # The models give these a default, so that what is wrong beside a missing one is told too.
        places[ModelSection.__name__]["required"] = ["cmd"]
    some = [{"required": [key]} for key in ("models", "peers", "hosts")]
    return {"$schema": _DIALECT, **schema, "title": "qmsup", "anyOf": some}
