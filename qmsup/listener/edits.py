"""What an operator changes in a JSON body on its way to the child. Every byte that is not concerned stays as it is."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from qmsup.listener.body import Body, Buffer
from qmsup.listener.members import COMMA, Member, members
from qmsup.listener.spool import Spool

_STEP = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Changes of top-level members; empty = none.

    Attributes:
        strip: keys that are taken out.
        put: key → value as JSON, replaced where it is and added where it is not; also when it is stripped.
        rename: the value of `model` as JSON, where the body has one.
    """

    strip: frozenset[str] = frozenset()
    put: Mapping[str, bytes] = field(default_factory=dict)
    rename: bytes | None = None

    def streams(self, asked: bool) -> bool:  # noqa: FBT001 - what it was is what it is about
        """Whether a body asks for a stream once it is changed, if it did or did not before."""
        if (value := self.put.get("stream")) is not None:
            return value == b"true"
        return asked and "stream" not in self.strip


def edited(body: Body, edits: Edits) -> Body:
    """The body with its changes, in a file of its own if it is large; the old one is closed then.

    Args:
        body: A JSON object that was checked; not empty.
        edits: What to change.

    Raises:
        RequestError: It has too many members to look at, or there is no room for it.
    """
    return _made_of(_pieces(body.buffer(), edits), body)


def spliced(body: Body, start: int, end: int, value: bytes) -> Body:
    """The body with other bytes between two places; the old one is closed."""
    buffer = body.buffer()
    before, after = _range(buffer, 0, start), _range(buffer, end, len(buffer))
    return _made_of(itertools.chain(before, (value,), after), body)


def _made_of(pieces: Iterable[bytes], former: Body) -> Body:
    spool = Spool()
    try:
        for piece in pieces:
            spool.add(piece)
        made = Body(content=spool.content(), length=spool.length)
    except BaseException:
        spool.close()
        raise
    former.close()
    return made


def _pieces(buffer: Buffer, edits: Edits) -> Iterator[bytes]:
    """The new body in order. What stood before a member that stays, a comma and some space, stays before it."""
    put = dict(edits.put)
    if edits.rename is not None:
        put["model"] = edits.rename
    missing = dict(edits.put)
    done = buffer.find(b"{") + 1  # up to here the old body has been dealt with
    yield buffer[:done]
    is_first = True
    for member in members(buffer):
        missing.pop(member.key, None)
        if member.key in edits.strip and member.key not in put:
            done = member.end if not is_first else _after_comma(buffer, member.end)
            continue
        yield from _member(buffer, member, done, put.get(member.key))
        done = member.end
        is_first = False
    for key, value in missing.items():
        yield b"%b%b:%b" % (b"" if is_first else b",", json.dumps(key).encode(), value)
        is_first = False
    yield from _range(buffer, done, len(buffer))


def _after_comma(buffer: Buffer, end: int) -> int:
    found = COMMA.match(buffer, end)
    return end if found is None else found.end()


def _member(buffer: Buffer, member: Member, since: int, value: bytes | None) -> Iterator[bytes]:
    if value is None:
        yield from _range(buffer, since, member.end)
    else:
        yield buffer[since : member.value]
        yield value


def _range(buffer: Buffer, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, _STEP):
        yield buffer[at : min(at + _STEP, end)]
