"""PROTOCOL.md against the code: a page that others write programs from must not lag behind."""

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from qmsup import wire
from qmsup.wire import bodies, codec, controlling, feed, listening
from qmsup.wire.listening import FromScheduler, FromWorker

PAGE = (Path(wire.__file__).parent / "PROTOCOL.md").read_text()
KINDS = [*get_args(FromWorker), *get_args(FromScheduler)]


def test_it_names_the_versions() -> None:
    assert f"**Listener protocol, version {listening.VERSION}**" in PAGE
    assert f"**Control protocol, version {controlling.VERSION}**" in PAGE


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_lists_each_message_with_its_fields_in_order(kind: type[msgspec.Struct]) -> None:
    tag = kind.__struct_config__.tag
    row = re.search(rf"^\| `{tag}` \| (.*?) \| .+ \|$", PAGE, re.MULTILINE)

    assert row is not None, f"no row for {tag!r}"
    fields = re.split(r", (?![^\[]*\])", row.group(1)) if row.group(1) else []
    named = [field.split(" = ")[0].strip() for field in fields]
    assert named == list(kind.__struct_fields__)


def test_it_lists_what_is_told_of_leases_waiters_and_requests_that_are_over_in_order() -> None:
    elements = re.findall(r"`\[(request, model, [^`]*)\]`", PAGE)

    told = [[field.split(" = ")[0] for field in element.split(", ")] for element in elements]
    kinds = (listening.Holding, listening.Waiting, listening.Finished)
    assert told == [list(kind.__struct_fields__) for kind in kinds]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("status", bodies.Status),
        ("ps", bodies.Ps),
        ("queue", bodies.Queue),
        ("explain", bodies.Explanation),
        ("journal", bodies.Journal),
        ("load", bodies.Loaded),
        ("subscribe", bodies.Subscription),
    ],
)
def test_it_lists_each_body_with_its_fields(verb: str, body: type[msgspec.Struct]) -> None:
    row = re.search(rf"^\| `{verb}` \|.*?\| (.*) \|$", PAGE, re.MULTILINE)

    assert row is not None
    for field in body.__struct_fields__:
        assert field in row.group(1)


def test_its_conversation_can_be_read() -> None:
    lines = re.findall(r"^(worker|scheduler) +(\[.*\])$", PAGE, re.MULTILINE)

    assert len(lines) == 8
    for sender, text in lines:
        frame = msgspec.msgpack.encode(json.loads(text))
        decode = codec.decode_from_worker if sender == "worker" else codec.decode_from_scheduler
        assert msgspec.to_builtins(decode(frame))[0] == json.loads(text)[0]


def test_its_control_messages_can_be_read() -> None:
    lines = [line.encode() for line in PAGE.splitlines() if line.startswith('{"v": 1')]
    question, *replies, item = lines

    assert feed.decode([b"model.chat", item]).body == {"state": "ready"}
    assert codec.decode_question(question).verb == "load"
    assert [codec.decode_reply(reply).ok for reply in replies] == [True, False]
