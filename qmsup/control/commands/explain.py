"""`qmsup explain`: why a model or a request is where it is, in words; and the journal it tells that from."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import click

from qmsup import places
from qmsup.control import options
from qmsup.errors import SchedulerUnavailableError
from qmsup.wire import bodies, codec


@click.command("explain")
@click.argument("model", required=False)
@click.option("--request", metavar="ID", help="A request, by its X-QM-Request-Id.")
@click.option(
    "--dump",
    type=click.File("wb", lazy=True),
    metavar="FILE",
    help="Write the whole journal to a file, - for stdout.",
)
@options.as_json
@options.where
@options.timeout(5.0)
def command(
    *,
    model: str | None,
    request: str | None,
    dump: IO[bytes] | None,
    as_json: bool,
    timeout: float,
) -> None:
    """Tell why a model or a request is where it is.

    Of a MODEL: what it does, who waits for it, what would have to stop for it now and why, and what was decided. Of
    a request: its story. The journal has no prompts and no keys in it, and can be replayed.
    """
    if [model, request, dump].count(None) != 2:  # noqa: PLR2004 - one of three
        raise click.UsageError("name one MODEL, or one --request ID, or a file to --dump to")
    if dump is not None:
        _dump(dump, timeout)
        return
    about = {"model": model} if request is None else {"request": request}
    answer = options.ask("explain", within=timeout, **about)
    if as_json:
        options.print_json(answer)
    else:
        _show(codec.read_body(answer, bodies.Explanation))


def _show(told: bodies.Explanation) -> None:
    if told.request is None:
        for sentence in told.now:
            click.echo(sentence)
    else:
        click.echo(f"{told.request}, for {told.model or 'a model that is not known'}")
    _section("waiting for it", [*map(_place, told.waiting), *map(_joined, told.loading)])
    _section("if it were loaded now", told.reasons)
    _section("in the way", told.obstacles)
    _section("what happened", map(_event, told.story))
    if told.request is not None:
        _section("now", told.now)


def _section(heading: str, lines: Iterable[str]) -> None:
    """A heading and what it is about; nothing where there is nothing to tell."""
    if every := [*lines]:
        click.echo("\n".join((f"{heading}:", *(f"  {line}" for line in every))))


def _place(place: bodies.Place) -> str:
    who = place.request or "a load"
    return f"{who}, place {place.position}, for {place.waited_s:.1f} s: {place.because}"


def _joined(request: str) -> str:
    return f"{request}, until it is loaded"


def _event(told: bodies.Told) -> str:
    return f"{time.strftime('%F %T', time.localtime(told.time))}  {told.text}"


def _dump(file: IO[bytes], timeout: float) -> None:
    """Copy the journal's files; a scheduler that runs writes first what it has in hand."""
    if options.door().is_remote:
        raise click.UsageError("the journal lies with the scheduler: ask for --dump on its machine")
    folder = places.journal_dir()
    try:
        journal = codec.read_body(options.ask("journal", within=timeout), bodies.Journal)
    except SchedulerUnavailableError:
        click.echo("no scheduler runs: this is the journal as it was left", err=True)
    else:
        folder = Path(journal.folder)
        if not journal.is_written:
            click.echo(f"the newest turns could not be written to {folder}: see the log", err=True)
    segments = places.journal_segments(folder)
    if not segments:
        raise click.UsageError(f"there is no journal in {folder}")
    for segment in segments:
        file.write(segment.read_bytes())
