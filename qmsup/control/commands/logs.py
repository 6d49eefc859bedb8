"""`qmsup logs`: what the models' programs wrote. Reads their files; needs no scheduler, unless for an alias."""

import contextlib
import json
import time
from pathlib import Path
from urllib.parse import unquote

import click

from qmsup import places
from qmsup.child_logs import Follower, last_lines
from qmsup.control import door, options
from qmsup.control.client import Client
from qmsup.errors import QmsupError
from qmsup.ids import ModelId
from qmsup.units import Seconds
from qmsup.wire import bodies, codec

_LOOK_AGAIN = Seconds(0.2)
_NAMED_WITHIN = Seconds(2.0)


@click.command("logs")
@click.argument("model", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="N",
)
@options.as_json
def command(*, model: str | None, follow: bool, count: int, as_json: bool) -> None:
    """Show the end of a model's log, or of each model's.

    -n says how many lines of it. With --json each line is an object with `model` and `line`. These are files of this
    machine; a port of a box elsewhere has its own at /logs/stream/MODEL.
    """
    page = _Page(is_json=as_json, has_headers=model is None)
    chosen = None if model is None else _known(ModelId(model), may_come=follow)
    followers: dict[ModelId, Follower] = {}
    if chosen is None and not _logged():
        click.echo(_none_yet(), err=True)
    try:
        for each in _logged() if chosen is None else [chosen]:
            if follow:
                followers[each] = Follower(places.log_file(each))
                page.add(each, followers[each].last_lines(count))
            else:
                page.add(each, last_lines(places.log_file(each), count))
        while follow:
            if chosen is None:
                _follow_newcomers(followers)
            for each, follower in followers.items():
                page.add(each, follower.new_lines())
            if not any(follower.has_more for follower in followers.values()):
                time.sleep(_LOOK_AGAIN)
    finally:
        for follower in followers.values():
            follower.close()


class _Page:
    """Prints lines, under a header whenever they are another model's than the ones before."""

    def __init__(self, *, is_json: bool, has_headers: bool) -> None:
        self._is_json = is_json
        self._has_headers = has_headers
        self._model: ModelId | None = None

    def add(self, model: ModelId, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._has_headers and not self._is_json and model != self._model:
            click.echo(f"{'' if self._model is None else chr(10)}==> {model} <==")
            self._model = model
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            if self._is_json:
                text = json.dumps({"model": model, "line": text}, ensure_ascii=False)
            click.echo(text)


def _logged() -> list[ModelId]:
    """The models that have a log, by name."""
    folder = places.log_file(ModelId("any")).parent
    found = (path for path in folder.glob("*.log") if path.is_file())
    return sorted(ModelId(unquote(path.stem)) for path in found)


def _known(name: ModelId, *, may_come: bool) -> ModelId:
    """The model of that name which has a log, or may have one later."""
    path: Path = places.log_file(name)
    if path.exists():
        return name
    model = _named(name)
    if model is not None and places.log_file(model).exists():
        return model
    if model is not None and may_come:
        click.echo(f"{model} has no log yet: waiting for its first start", err=True)
        return model
    logged = _logged()
    have = f"models with a log: {', '.join(logged)}" if logged else _none_yet()
    raise click.UsageError(f"no log of {name!r} at {path}; {have}")


def _none_yet() -> str:
    return f"no model has a log yet in {places.state_dir()}, which QMSUP_STATE_DIR must name as for `qmsup serve`"


def _named(name: str) -> ModelId | None:
    """The model that has this alias, if there is a scheduler that knows."""
    with contextlib.suppress(QmsupError), Client.through(door.here(), _NAMED_WITHIN) as client:
        return codec.read_body(client.ask("explain", model=name), bodies.Explanation).model
    return None


def _follow_newcomers(followers: dict[ModelId, Follower]) -> None:
    for model in _logged():
        if model not in followers:
            followers[model] = Follower(places.log_file(model), from_start=True)
