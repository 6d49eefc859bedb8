"""`qmsup lease`: keep a model in use for a job."""

import secrets

import click

from qmsup.control import options
from qmsup.wire import bodies, codec


@click.command("lease")
@click.argument("model")
@options.ttl()
@click.option("--purpose", required=True, metavar="T", help="What for, in a few words.")
@click.option("--owner", envvar="USER", default="", help="Whose it is.  [env: USER]")
@options.as_json
@options.where
@options.timeout(600.0)
def command(
    *, model: str, ttl: float, purpose: str, owner: str, as_json: bool, timeout: float
) -> None:
    """Load a model, keep it in use for a job, and print the lease's id.

    Nothing evicts it until `qmsup release ID`, or until the time is over without a `qmsup renew ID`.
    """
    answer = options.ask(
        "lease",
        within=timeout,
        model=model,
        ttl_s=ttl,
        purpose=purpose,
        owner=owner,
        lease=f"job-{secrets.token_hex(6)}",
    )
    if as_json:
        options.print_json(answer)
        return
    click.echo(codec.read_body(answer, bodies.Leased).lease)
