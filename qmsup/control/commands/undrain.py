"""`qmsup undrain`: take work again."""

import click

from qmsup.control import options


@click.command("undrain")
@click.argument("host", required=False)
@options.as_json
@options.where
@options.timeout(5.0)
def command(host: str | None, *, as_json: bool, timeout: float) -> None:
    """Take work again after a `qmsup drain`, with the same HOST if it had one."""
    named = {} if host is None else {"host": host}
    options.have_done("undrain", within=timeout, as_json=as_json, **named)
