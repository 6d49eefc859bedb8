"""`qmsup unload`: stop models."""

import click

from qmsup.control import options
from qmsup.wire import bodies, codec


@click.command("unload")
@click.argument("models", nargs=-1)
@click.option("--drain", is_flag=True, help="Let the requests under way finish first.")
@options.as_json
@options.where
@options.timeout(600.0)
def command(*, models: tuple[str, ...], drain: bool, as_json: bool, timeout: float) -> None:
    """Stop models, all when none is named.

    Waits until they are gone. Without --drain, requests under way on them end with an error.
    """
    answer = options.ask("unload", within=timeout, models=list(models), drain=drain)
    if as_json:
        options.print_json(answer)
        return
    unloaded = codec.read_body(answer, bodies.Unloaded)
    stopped = ", ".join(unloaded.stopped)
    click.echo(f"stopped: {stopped}" if stopped else "nothing was running")
