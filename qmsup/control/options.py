"""What verbs have in common: their options, and asking the scheduler."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from qmsup.control.client import Client
from qmsup.units import Seconds

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


def ask(verb: str, *, within: float, **args: object) -> Any:
    """One question over a connection of its own; see Client.ask."""
    with Client(timeout=Seconds(within)) as client:
        return client.ask(verb, **args)


def print_json(document: object) -> None:
    """Print a document for programs; names stay readable, whatever their alphabet."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
