"""`qmsup leases`: who uses which model now."""

import click

from qmsup.control import options, table
from qmsup.control.table import Column
from qmsup.wire import bodies, codec

_COLUMNS = (
    Column("ID"),
    Column("MODEL"),
    Column("KIND"),
    Column("OWNER"),
    Column("PURPOSE"),
    Column("TTL", is_number=True),
)


@click.command("leases")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Show who uses which model now.

    A model with a lease is not evicted. TTL is the time left before a job has to renew its own.
    """
    answer = options.ask("leases", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    leases = codec.read_body(answer, bodies.Leases).leases
    if leases:
        table.show(_COLUMNS, [_row(lease) for lease in leases])
    else:
        click.echo("no model is in use")


def _row(lease: bodies.Lease) -> tuple[str, ...]:
    return (
        lease.lease,
        lease.model,
        lease.kind,
        table.text_of(lease.owner),
        table.text_of(lease.purpose),
        table.duration(lease.ttl_s),
    )
