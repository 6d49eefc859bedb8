"""Which conversation a request belongs to, so that later ones can find the machine that knows it."""

import hashlib

import msgspec
from msgspec import Raw

from qmsup.listener.body import Environ
from qmsup.listener.payload import Fields
from qmsup.listener.spool import SPOOL_ABOVE

_HEADERS = (
    "HTTP_X_SESSION_ID",
    "HTTP_X_OPENWEBUI_CHAT_ID",
    "HTTP_X_LITELLM_SESSION_ID",
    "HTTP_X_CONVERSATION_ID",
)
_WHO = ("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR", "HTTP_AUTHORIZATION", "HTTP_X_API_KEY")
_MAX_NAME = 200
_MAX_HASHED = 4096
"""Bytes of each text that count: enough to tell conversations apart, little enough to be quick."""


class _Message(msgspec.Struct, frozen=True, gc=False):
    role: Raw = Raw()
    content: Raw = Raw()


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    session_id: Raw = Raw()


_decode_messages = msgspec.json.Decoder(list[_Message]).decode
_decode_metadata = msgspec.json.Decoder(_Metadata).decode
_decode_name = msgspec.json.Decoder(str).decode


def conversation_of(environ: Environ, fields: Fields) -> str:
    """What the client calls the conversation, else a fingerprint of how it began, else ""."""
    for header in _HEADERS:
        if name := environ.get(header, "").strip():
            return _bounded(name)
    return _bounded(_named_in(fields)) or _fingerprint(fields)


def client_of(environ: Environ) -> str:
    """A digest of where a request came from and with which key, for one whose conversation is not known; "" = unknown.

    It need not be true: whoever claims to be somebody else shares his holds, and no more.
    """
    told = [environ.get(name, "") for name in _WHO]
    if not any(told):
        return ""
    return hashlib.blake2b("\0".join(told).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _named_in(fields: Fields) -> str:
    return _text(fields.prompt_cache_key) or _session_in(fields.metadata)


def _session_in(metadata: Raw) -> str:
    if not metadata or len(metadata) > SPOOL_ABOVE:
        return ""
    try:
        return _text(_decode_metadata(metadata).session_id)
    except (
        msgspec.DecodeError,
        RecursionError,
    ):  # shaped otherwise: the child may know what it means
        return ""


def _text(raw: Raw) -> str:
    if not raw or len(raw) > SPOOL_ABOVE:
        return ""
    try:
        return _decode_name(raw)
    except msgspec.DecodeError:
        return ""


def _fingerprint(fields: Fields) -> str:
    """A hash over the system prompt and the first user message: what all turns of a conversation share."""
    if not fields.messages or len(fields.messages) > SPOOL_ABOVE:
        return ""
    try:
        turns = _decode_messages(fields.messages)
    except (msgspec.DecodeError, RecursionError):
        return ""
    digest = hashlib.blake2b(memoryview(fields.system)[:_MAX_HASHED], digest_size=8)
    for turn in turns:
        role = bytes(turn.role)
        digest.update(b"\0" + bytes(turn.content)[:_MAX_HASHED])
        if role == b'"user"':
            return "f-" + digest.hexdigest()
    return ""


def _bounded(name: str) -> str:
    if len(name) <= _MAX_NAME:
        return name
    return "h-" + hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()
