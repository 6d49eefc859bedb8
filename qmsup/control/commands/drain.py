"""`qmsup drain`: take no more work."""

import click

from qmsup.control import options


@click.command("drain")
@options.as_json
@options.timeout(5.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Take no more work: waiting and new requests are refused, those under way go on.

    Until `qmsup undrain`.
    """
    options.have_done("drain", within=timeout, as_json=as_json)
