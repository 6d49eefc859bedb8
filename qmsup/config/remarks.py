"""What some keys mean here, where that is less than in llama-swap: said, so that nobody is misled."""

from collections.abc import Iterator

from qmsup.config.foreign import ForeignKeys
from qmsup.config.model_shape import ModelSection
from qmsup.config.problems import Path, Problems
from qmsup.config.shape import Shape
from qmsup.errors import key_text

_NONE = "has no effect: "
_OF_THE_TOP: dict[str, str] = {
    "metricsMaxInMemory": "what is counted here does not grow",
    "captureBuffer": "bodies of requests and answers are never kept",
    "performance": "the machine is read as often as is needed",
    "store": "state is kept in the folder that QMSUP_STATE_DIR names",
    "ui": "there is no web interface",
}


def remark_on(shape: Shape, problems: Problems) -> None:
    """Note what there is to say about a file that is otherwise right."""
    for key, text in _of_the_top(shape):
        problems.remark((key,), _NONE + text)
    for name, profile in shape.profiles.items():
        pins = ", ".join(key_text(pin) for pin in profile.pins) or "none"
        text = f"is never the active one, as none is when llama-swap starts: its pins ({pins}) change nothing"
        problems.remark(("profiles", name), text)
    for name, model in shape.models.items():
        for path, text in _of_a_model(model):
            problems.remark(("models", name, *path), text)


def _of_the_top(shape: ForeignKeys) -> Iterator[tuple[str, str]]:
    if shape.log_to_stdout in {"upstream", "both"}:
        yield "logToStdout", "`qmsup logs MODEL -f` and /logs/stream have what models say"
    elif shape.log_to_stdout == "none":
        yield "logToStdout", "`logLevel: error` is the least there is"
    if shape.log_time_format:
        yield "logTimeFormat", "times are written in one format"
    for field, info in type(shape).model_fields.items():
        key = info.alias or field
        if key in _OF_THE_TOP and getattr(shape, field):
            yield key, _OF_THE_TOP[key]


def _of_a_model(model: ModelSection) -> Iterator[tuple[Path, str]]:
    if model.timeouts is not None:
        text = "the model is on this box; a client may send X-QM-Timeout-Ms"
        yield ("timeouts",), _NONE + text
    if model.compat is not None and model.compat.ignore_websockets:
        text = "a websocket counts as any other request"
        yield ("compat", "ignoreWebsockets"), _NONE + text
    if "${PORT}" in str(model.metadata):
        text = "${PORT} is told as it stands: it is another at each start, and /running has it"
        yield ("metadata",), text
