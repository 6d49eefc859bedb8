"""`qmsup unpin`: keep it no longer."""

import click

from qmsup.control import options


@click.command("unpin")
@click.argument("model")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, model: str, as_json: bool, timeout: float) -> None:
    """Let a pinned model be evicted again."""
    options.have_done("unpin", within=timeout, as_json=as_json, model=model)
