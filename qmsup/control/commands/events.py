"""`qmsup events`: what was decided lately, and with -f all that changes."""

import json
import time
from collections.abc import Mapping
from typing import Any

import click

from qmsup.control import options
from qmsup.control.feed import Mirror, looking_on
from qmsup.control.polled import PolledMirror
from qmsup.units import Seconds
from qmsup.wire.feed import KINDS, Item

_LOOK_AGAIN = Seconds(1.0)


@click.command("events")
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens from now on.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="PREFIX",
    help=f"Only topics that begin so, such as decision. or model.chat (kinds: {', '.join(KINDS)}).",
)
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, follow: bool, topics: tuple[str, ...], as_json: bool, timeout: float) -> None:
    """Show the last decisions; with -f, go on with everything that changes.

    Of a scheduler elsewhere (--connect) the state is asked for each second: what lasted less is not seen.

    With --json each line is an object with `time`, `topic` and `body`; a body of null says that there is no such thing
    any more.
    """
    _check_topics(topics)
    show = _as_json if as_json else _as_text
    seen = looking_on(topics or ("",), timeout=Seconds(timeout), door=options.door())
    with seen as mirror:
        for decision in mirror.decisions:
            body = {key: value for key, value in decision.items() if key != "time"}
            topic = f"decision.{decision['decision']}"
            if topic.startswith(topics or ""):
                show(float(decision["time"]), topic, body)
        if follow:
            _follow(mirror, as_json=as_json)


def _check_topics(topics: tuple[str, ...]) -> None:
    """Refuse what no topic begins with: it would be waited for in vain."""
    for topic in topics:
        if not any(f"{kind}.".startswith(topic) or topic.startswith(f"{kind}.") for kind in KINDS):
            kinds = ", ".join(f"{kind}." for kind in KINDS)
            raise click.UsageError(
                f"no topic begins with {topic!r}: write one of {kinds} or more of it"
            )


def _follow(mirror: Mirror | PolledMirror, *, as_json: bool) -> None:
    missed = 0
    while True:
        for item in mirror.updates(_LOOK_AGAIN):
            _show_item(item, as_json=as_json)
        if isinstance(mirror, PolledMirror) and mirror.missed > missed:
            missed = mirror.missed
            click.echo("more happened in a second than can be told from afar", err=True)


def _show_item(item: Item, *, as_json: bool) -> None:
    (_as_json if as_json else _as_text)(item.time, item.topic, item.body)


def _as_json(at: float, topic: str, body: Any) -> None:
    line = {"time": round(at, 3), "topic": topic, "body": body}
    click.echo(json.dumps(line, ensure_ascii=False))


def _as_text(at: float, topic: str, body: Any) -> None:
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    click.echo(f"{clock}.{int(at * 10) % 10}  {topic}  {_said(body)}".rstrip())


def _said(body: Any) -> str:
    if body is None:
        return "gone"
    if not isinstance(body, Mapping):
        return str(body)
    return "  ".join(
        f"{key}={_value(value)}"
        for key, value in body.items()
        if value not in (None, [], "", False) and key != "decision"  # the topic has said that
    )


def _value(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(each) for each in value)
    return str(value)
