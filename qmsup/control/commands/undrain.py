"""`qmsup undrain`: take work again."""

import click

from qmsup.control import options


@click.command("undrain")
@options.as_json
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Take work again after a `qmsup drain`."""
    options.have_done("undrain", within=timeout, as_json=as_json)
