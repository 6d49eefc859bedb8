"""`qmsup reload`: put the configuration file in force."""

import click

from qmsup.control import options
from qmsup.wire import bodies, codec


@click.command("reload")
@options.as_json
@options.where
@options.timeout(60.0)
def command(*, as_json: bool, timeout: float) -> None:
    """Read the configuration file again and put it in force.

    Requests under way and waiting ones stay. A file with a mistake changes nothing; each mistake is told.
    """
    answer = options.ask("reload", within=timeout)
    if as_json:
        options.print_json(answer)
        return
    reloaded = codec.read_body(answer, bodies.Reloaded)
    click.echo(reloaded.text)
    for sentence in reloaded.needs_restart:
        click.echo(sentence)
