"""Which paths are relayed to a model's child."""

from dataclasses import dataclass

from qmsup.listener.outcome import Dialect


@dataclass(frozen=True, slots=True)
class Relayed:
    """A path that goes to the model which its body or query names.

    Attributes:
        path: as the child knows it.
        generates: it can answer with a stream of tokens, so a placeholder may be sent while it waits.
        dialect: how its answers tell of tool calls.
        begins_job: its answer names a job that goes on after it.
    """

    path: str
    generates: bool = False
    dialect: Dialect = Dialect.NONE
    begins_job: bool = False


_RELAYED = (
    Relayed("/v1/chat/completions", generates=True, dialect=Dialect.CHAT),
    Relayed("/v1/completions", generates=True),
    Relayed("/v1/responses", generates=True, dialect=Dialect.RESPONSES),
    Relayed("/v1/messages", generates=True, dialect=Dialect.MESSAGES),
    Relayed("/v1/messages/count_tokens"),
    Relayed("/v1/embeddings"),
    Relayed("/v1/rerank"),
    Relayed("/v1/reranking"),
    Relayed("/v1/audio/speech"),
    # A server may not know how to stream these, and then says so by answering whole: no placeholder.
    Relayed("/v1/audio/transcriptions"),
    Relayed("/v1/audio/voices"),
    Relayed("/v1/images/generations"),
    Relayed("/v1/images/edits"),
    Relayed("/sdapi/v1/txt2img"),
    Relayed("/sdapi/v1/img2img"),
    Relayed("/sdcpp/v1/img_gen", begins_job=True),
    Relayed("/sdcpp/v1/vid_gen", begins_job=True),
    Relayed("/chat/completions", generates=True, dialect=Dialect.CHAT),
    Relayed("/completions", generates=True),
    Relayed("/completion", generates=True),
    Relayed("/responses", generates=True, dialect=Dialect.RESPONSES),
    Relayed("/infill", generates=True),
    Relayed("/audio/transcriptions"),
    Relayed("/embedding"),
    Relayed("/embeddings"),
    Relayed("/rerank"),
    Relayed("/reranking"),
    Relayed("/tokenize"),
    Relayed("/detokenize"),
    Relayed("/apply-template"),
)


def _spellings(relayed: Relayed) -> tuple[str, ...]:
    path = relayed.path
    paths = [path]
    if path.startswith("/v1/"):
        paths.append("/v/" + path.removeprefix("/v1/"))
    return tuple(spelling for p in paths for spelling in (p, p + "/"))


_LOOKED_AT = (
    Relayed("/props"),
    Relayed("/slots"),
    Relayed("/sdapi/v1/loras"),
    Relayed("/v1/audio/voices"),
)

RELAYED = {spelling: relayed for relayed in _RELAYED for spelling in _spellings(relayed)}
"""By `PATH_INFO`, in every spelling that is accepted: one look-up decides the way of a POST."""

_METRICS = Relayed("/metrics")
_SPELLINGS_OF_METRICS = frozenset(_spellings(_METRICS))

LOOKED_AT = {spelling: relayed for relayed in _LOOKED_AT for spelling in _spellings(relayed)}
"""The same for GET. It never loads a model: what is not there cannot be looked at."""


def looked_at(path: str, query: str) -> Relayed | None:
    """What a GET of this path looks at in a model's server; None = it is no such path.

    `/metrics` is a model's only where the query names one.
    """
    if path in _SPELLINGS_OF_METRICS:
        return _METRICS if "model=" in query else None
    return LOOKED_AT.get(path)
