"""`qmsup renew`: a job goes on."""

import click

from qmsup.control import options


@click.command("renew")
@click.argument("lease", metavar="ID")
@options.ttl(default=600.0)
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, lease: str, ttl: float, as_json: bool, timeout: float) -> None:
    """Keep a job's lease for so many seconds from now on."""
    options.have_done("renew", within=timeout, as_json=as_json, lease=lease, ttl_s=ttl)
