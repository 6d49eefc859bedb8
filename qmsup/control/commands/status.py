"""`qmsup status`: the scheduler and the listener workers connected to it."""

import time

import click

from qmsup.control import options, table
from qmsup.control.table import Column
from qmsup.wire import bodies, codec

_COLUMNS = (
    Column("LISTENER"),
    Column("WORKER"),
    Column("PID", is_number=True),
    Column("WAITING", is_number=True),
    Column("HELD", is_number=True),
)


@click.command("status")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Show the scheduler and its listeners.

    WAITING requests stand in the line, HELD ones use a model.
    """
    answer = options.ask("status", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    status = codec.read_body(answer, bodies.Status)
    up = None if status.since is None else time.time() - status.since
    click.echo(
        f"scheduler pid {table.text_of(status.pid)}, epoch {status.epoch},"
        f" version {status.version}, up {table.duration(up)}"
    )
    click.echo(f"config {table.text_of(status.config)}")
    if status.draining:
        click.echo(options.DRAINING)
    for mishap in status.mishaps:
        ago = table.duration(time.time() - mishap.last)
        often = "once," if mishap.times == 1 else f"{mishap.times} times, the last"
        click.echo(
            f"{mishap.part} met a bug {often} {ago} ago at {mishap.doing}:"
            f" {mishap.because}; the log has it, please report it"
        )
    table.show(
        _COLUMNS,
        [
            (each.name, each.worker, table.text_of(each.pid), str(each.waiting), str(each.held))
            for each in sorted(status.listeners, key=lambda one: (one.name, one.pid or 0))
        ],
    )
