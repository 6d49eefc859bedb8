"""What every section of a configuration is made of: its base, and the kinds of its values."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_TEN_YEARS_S = 315_360_000


def text_of(value: object) -> object:
    """What was written, where text is wanted: a model may be called 4.10."""
    return getattr(value, "text", value)


def _flag(value: object) -> object:
    words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
    return words.get(value.lower(), value) if isinstance(value, str) else value


def nothing_is_empty(kind: type) -> BeforeValidator:
    """An empty one of a kind for `models:` with nothing below it, which is null in YAML."""
    return BeforeValidator(lambda value: kind() if value is None else value)


Text = Annotated[str, BeforeValidator(text_of)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Seconds = Annotated[float, Field(ge=0, le=_TEN_YEARS_S, description="in seconds")]
SomeSeconds = Annotated[float, Field(gt=0, le=_TEN_YEARS_S, description="in seconds")]
Millis = Annotated[float, Field(ge=0, le=_TEN_YEARS_S * 1000, description="in milliseconds")]
SomeMillis = Annotated[float, Field(gt=0, le=_TEN_YEARS_S * 1000, description="in milliseconds")]
Gigabytes = Annotated[float, Field(ge=0, le=1_000_000, description="in GB of 1024 MiB")]
Texts = Annotated[list[Text], nothing_is_empty(list)]
Params = Annotated[dict[str, object], nothing_is_empty(dict)]
Macros = Annotated[dict[str, str | int | float | bool], nothing_is_empty(dict)]


class Section(BaseModel):
    """A mapping with known keys in camelCase. Keys that start with `x-` are the operator's own."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        json_schema_extra={"patternProperties": {"^x-": {}}},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_own_keys(cls, value: object) -> object:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {k: v for k, v in value.items() if not str(k).startswith("x-")}
        return value
