"""`qmsup release`: a job is done."""

import click

from qmsup.control import options


@click.command("release")
@click.argument("lease", metavar="ID")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, lease: str, as_json: bool, timeout: float) -> None:
    """End a job's lease. One that is over already is no error."""
    options.have_done("release", within=timeout, as_json=as_json, lease=lease)
