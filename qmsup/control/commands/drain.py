"""`qmsup drain`: take no more work."""

import click

from qmsup.control import options


@click.command("drain")
@click.argument("host", required=False)
@options.as_json
@options.where
@options.timeout(5.0)
def command(host: str | None, *, as_json: bool, timeout: float) -> None:
    """Take no more work: waiting and new requests are refused, those under way go on.

    With a HOST, routes send it nothing new; `local` is this box. Until `qmsup undrain`.
    """
    named = {} if host is None else {"host": host}
    options.have_done("drain", within=timeout, as_json=as_json, **named)
