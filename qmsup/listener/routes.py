"""Which paths are relayed to a model's child."""

from dataclasses import dataclass

from qmsup.listener.outcome import Dialect


@dataclass(frozen=True, slots=True)
class Relayed:
    """A path whose POST goes to the model that its JSON body names.

    Attributes:
        path: as the child knows it.
        generates: it can answer with a stream of tokens, so a placeholder may be sent while it waits.
        dialect: how its answers tell of tool calls.
    """

    path: str
    generates: bool = False
    dialect: Dialect = Dialect.NONE


_RELAYED = (
    Relayed("/v1/chat/completions", generates=True, dialect=Dialect.CHAT),
    Relayed("/v1/completions", generates=True),
    Relayed("/v1/responses", generates=True, dialect=Dialect.RESPONSES),
    Relayed("/v1/messages", generates=True, dialect=Dialect.MESSAGES),
    Relayed("/v1/messages/count_tokens"),
    Relayed("/v1/embeddings"),
    Relayed("/v1/rerank"),
    Relayed("/v1/reranking"),
    Relayed("/chat/completions", generates=True, dialect=Dialect.CHAT),
    Relayed("/completions", generates=True),
    Relayed("/completion", generates=True),
    Relayed("/infill", generates=True),
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


RELAYED = {spelling: relayed for relayed in _RELAYED for spelling in _spellings(relayed)}
"""By `PATH_INFO`, in every spelling that is accepted: one look-up decides the way of a request."""
