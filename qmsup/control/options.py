"""What verbs have in common: their options, and asking the scheduler."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from qmsup.control.client import Client
from qmsup.units import Seconds
from qmsup.wire import bodies, codec

_Function = TypeVar("_Function", bound=Callable[..., object])

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def timeout(default: float) -> Callable[[_Function], _Function]:
    """The option `--timeout S`; the default is in seconds."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="S",
        help="Give up after this many seconds.",
    )


def ttl(
    *, required: bool = False, default: float | None = None
) -> Callable[[_Function], _Function]:
    """The option `--ttl S`, of a lease."""
    return click.option(
        "--ttl",
        type=click.FloatRange(min=0, min_open=True),
        required=required,
        default=default,
        show_default=True,
        metavar="S",
        help="Seconds until it ends by itself.",
    )


def have_done(verb: str, *, within: float, as_json: bool, **args: object) -> None:
    """Ask for something whose answer is a sentence, and print that."""
    answer = ask(verb, within=within, **args)
    if as_json:
        print_json(answer)
    else:
        click.echo(codec.read_body(answer, bodies.Done).text or "done")


def ask(verb: str, *, within: float, **args: object) -> Any:
    """One question over a connection of its own; see Client.ask."""
    with Client(timeout=Seconds(within)) as client:
        return client.ask(verb, **args)


def print_json(document: object) -> None:
    """Print a document for programs; names stay readable, whatever their alphabet."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
