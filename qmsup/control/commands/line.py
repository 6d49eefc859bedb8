"""`qmsup queue`: the line, and why each in it waits."""

import click

from qmsup.control import options, table
from qmsup.control.table import Column
from qmsup.wire import bodies, codec

_COLUMNS = (
    Column("POSITION", is_number=True),
    Column("REQUEST"),
    Column("MODEL"),
    Column("LISTENER"),
    Column("WAITED", is_number=True),
    Column("PATIENCE", is_number=True),
    Column("BECAUSE"),
)


@click.command("queue")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Show who waits, for how long and why.

    PATIENCE is how much longer a request respects that others are in its way. `qmsup explain --request ID` tells
    the whole story of one.
    """
    answer = options.ask("queue", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    queue = codec.read_body(answer, bodies.Queue)
    if queue.queue:
        table.show(_COLUMNS, [_row(place) for place in queue.queue])
    else:
        click.echo("nobody stands in the line")
    if loading := [f"{each.model} ({each.waiting} waiting)" for each in queue.loading]:
        click.echo(f"\nloading: {', '.join(loading)}")


def _row(place: bodies.Place) -> tuple[str, ...]:
    return (
        str(place.position),
        place.request or "(a load)",
        place.model,
        table.text_of(place.listener),
        table.duration(place.waited_s),
        table.duration(place.patience_left_s),
        place.because,
    )
