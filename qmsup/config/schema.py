"""The JSON Schema of a configuration, for editors and other programs."""

from qmsup.config.shape import Shape


def json_schema() -> dict[str, object]:
    """JSON Schema (2020-12) of the whole file, made from the same models that check it."""
    schema: dict[str, object] = Shape.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "qmsup"}
