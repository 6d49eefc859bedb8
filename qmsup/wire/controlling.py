"""Messages between a control client and the scheduler: JSON objects, so that any language can write one (PROTOCOL.md).

A listener's worker asks the same questions over its own socket. A frame that starts with `{` is one of these.
"""

from typing import Any

import msgspec

VERSION = 1

LARGEST_QUESTION = 64 * 1024
"""Bytes of a question. None is nearly as large."""

LONGEST_ID = 256
"""Characters of a question's id."""


class Question(msgspec.Struct, kw_only=True, frozen=True):
    """`{"v": 1, "id": "…", "verb": "ps", "args": {…}}`. Repeating an id asks for the same answer again."""

    v: int
    id: str
    verb: str
    args: dict[str, Any] = {}


class Trouble(msgspec.Struct, kw_only=True, frozen=True):
    """Why the scheduler refused: a code of interfaces: errors, and words that say what to do."""

    code: str
    message: str


class Reply(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """`{"v": 1, "id": "…", "ok": true, "body": {…}}` or `{"v": 1, "id": "…", "ok": false, "error": {…}}`."""

    v: int
    id: str
    ok: bool
    body: Any = None
    error: Trouble | None = None
