"""What a `POST /api/leases` says."""

from typing import TypedDict

import msgspec

from qmsup.errors import Code, Refusal, RequestError
from qmsup.listener.body import Environ, read_body

_LARGEST = 64 * 1024


class LeaseWanted(TypedDict):
    """The arguments of a `lease` (wire: PROTOCOL.md)."""

    model: str
    ttl_s: float
    purpose: str
    owner: str


class _Body(msgspec.Struct):
    model: str = ""
    ttl_s: float = 0.0
    purpose: str = ""
    owner: str = ""


_decoder = msgspec.json.Decoder(_Body)


def lease_wanted(environ: Environ) -> LeaseWanted:
    """Read the request's body; what the values may be is the scheduler's to judge.

    Raises:
        RequestError: It is too large, of another shape, or names no model.
    """
    body = read_body(environ, _LARGEST)
    try:
        wanted = _decoder.decode(body.buffer())
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        message = f"the body must be a JSON object with model, ttl_s and purpose: {error}"
        raise RequestError(Refusal(code=Code.BAD_REQUEST, message=message)) from error
    finally:
        body.close()
    if not wanted.model:
        message = 'a lease names its model: `"model": "..."`'
        raise RequestError(Refusal(code=Code.MODEL_MISSING, message=message))
    return LeaseWanted(
        model=wanted.model, ttl_s=wanted.ttl_s, purpose=wanted.purpose, owner=wanted.owner
    )
