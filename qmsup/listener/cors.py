"""What a browser needs to see before it lets a page read an answer: the same for answers, refusals and errors."""

EXPOSED = (
    "X-QM-Model, X-QM-Model-Loaded, X-QM-Wait-Ms, X-QM-Request-Id, X-QM-Host, Retry-After, Location"
)
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_MAX_ORIGIN = 512
_MAX_AGE_S = "600"


def cors_headers(origin: str | None) -> tuple[tuple[str, str], ...]:
    """The CORS headers of an answer to a request with this `Origin`; just `Vary` for one without.

    Keys travel in `Authorization`, not in cookies, so credentials are not allowed and any origin may be echoed.
    """
    if origin is None or not _is_harmless(origin):
        return (("Vary", "Origin"),)
    return (
        ("Access-Control-Allow-Origin", origin),
        ("Access-Control-Expose-Headers", EXPOSED),
        ("Vary", "Origin"),
    )


def preflight_headers(origin: str | None, wanted: str | None) -> tuple[tuple[str, str], ...]:
    """The answer to an OPTIONS request; `wanted` is its `Access-Control-Request-Headers`."""
    allowed = (
        wanted if wanted and _is_harmless(wanted) else "Authorization, Content-Type, X-Api-Key"
    )
    return (
        *cors_headers(origin),
        ("Access-Control-Allow-Methods", METHODS),
        ("Access-Control-Allow-Headers", allowed),
        ("Access-Control-Max-Age", _MAX_AGE_S),
    )


def _is_harmless(value: str) -> bool:
    return len(value) <= _MAX_ORIGIN and value.isascii() and value.isprintable()
