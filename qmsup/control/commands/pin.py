"""`qmsup pin`: keep a model loaded."""

import click

from qmsup.control import options


@click.command("pin")
@click.argument("model")
@options.as_json
@options.where
@options.timeout(5.0)
def command(*, model: str, as_json: bool, timeout: float) -> None:
    """Have a model stay: once it is loaded, no request evicts it.

    Until `qmsup unpin`, over restarts too. Who would need its place is refused; what merely finds no room beside it
    under vramBudgetGB is loaded all the same, and goes over the budget.
    """
    options.have_done("pin", within=timeout, as_json=as_json, model=model)
