"""`qmsup hosts`: the machines that routes choose from."""

import click

from qmsup.control import options, table
from qmsup.control.table import Column
from qmsup.wire import bodies, codec

_COLUMNS = (
    Column("HOST"),
    Column("URL"),
    Column("STATE"),
    Column("KIND"),
    Column("MODEL"),
    Column("LOADED"),
    Column("INFLIGHT", is_number=True),
    Column("QUEUED", is_number=True),
    Column("CTX", is_number=True),
)


@click.command("hosts")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Show the machines that routes choose from, a line for each model that they can load.

    `local` is this box, where a route may choose it: `qmsup ps` shows its models.
    INFLIGHT is out of how many that the host takes at once, QUEUED out of how many that may wait.
    """
    answer = options.ask("hosts", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    hosts = codec.read_body(answer, bodies.Hosts).hosts
    if hosts:
        table.show(_COLUMNS, [row for host in hosts for row in _rows(host)])
    else:
        click.echo("no hosts: the configuration names none (`hosts:`)")


def _rows(host: bodies.Host) -> list[tuple[str, ...]]:
    head = (host.name, table.text_of(host.url or None), _state(host), table.text_of(host.kind))
    if not host.models:
        none = table.text_of(None)
        return [(*head, none, ", ".join(host.loaded) or none, none, none, none)]
    return [
        (
            *head,
            model.name,
            "yes" if model.name in host.loaded else "no",
            f"{model.inflight}/{model.parallel}",
            f"{model.queued}/{model.queue_max}",
            table.text_of(model.ctx),
        )
        for model in host.models
    ]


def _state(host: bodies.Host) -> str:
    health = "healthy" if host.healthy else f"unhealthy: {host.because or 'not seen lately'}"
    return f"draining, {health}" if host.draining else health
