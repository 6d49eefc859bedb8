"""`qmsup load`: have a model ready before anyone asks for it."""

import click

from qmsup.control import options
from qmsup.wire import bodies, codec


@click.command("load")
@click.argument("model")
@options.as_json
@options.where
@options.timeout(600.0)
def command(*, model: str, as_json: bool, timeout: float) -> None:
    """Load a model and wait until it is ready.

    It stands in the line as a request would, and others are evicted for it by the same rules.
    """
    answer = options.ask("load", within=timeout, model=model)
    if as_json:
        options.print_json(answer)
        return
    loaded = codec.read_body(answer, bodies.Loaded)
    click.echo(loaded.text or f"{loaded.model or model} is ready")
