"""What verbs have in common: their options, and asking the scheduler."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from qmsup import places
from qmsup.control.client import Client
from qmsup.control.door import Door
from qmsup.units import Seconds
from qmsup.wire import bodies, codec

_Function = TypeVar("_Function", bound=Callable[..., object])

DRAINING = "draining: no new work is taken until `qmsup undrain`, restarts do not end it"
"""What an operator has to see of a box that refuses everybody."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def where(function: _Function) -> _Function:
    """The options that say which scheduler is asked; `door` has what they say."""
    options = (
        click.option(
            "--connect",
            metavar="tcp://HOST:PORT",
            envvar="QMSUP_CONTROL",
            expose_value=False,
            callback=_note,
            help="Ask the scheduler there, not this machine's; needs both keys.  [env: QMSUP_CONTROL]",
        ),
        click.option(
            "--key-file",
            type=click.Path(path_type=Path),
            envvar="QMSUP_KEY_FILE",
            expose_value=False,
            callback=_note,
            help="Your secret key, of `qmsup keys`.  [env: QMSUP_KEY_FILE]",
        ),
        click.option(
            "--server-key",
            type=click.Path(path_type=Path),
            envvar="QMSUP_SERVER_KEY",
            expose_value=False,
            callback=_note,
            help="That scheduler's public key.  [env: QMSUP_SERVER_KEY]",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _note(context: click.Context, parameter: click.Parameter, value: object) -> None:
    context.meta[f"{__name__}.{parameter.name}"] = value


def door() -> Door:
    """The way to the scheduler that the command names."""
    said = click.get_current_context().meta
    return Door(
        endpoint=said.get(f"{__name__}.connect") or places.scheduler_endpoint(),
        own_key=said.get(f"{__name__}.key_file"),
        server_key=said.get(f"{__name__}.server_key"),
    )


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


def ttl(default: float | None = None) -> Callable[[_Function], _Function]:
    """The option `--ttl S`, of a lease; without a default it has to be said."""
    # To click a default of None is one, and what is required is there then.
    given = {"required": True} if default is None else {"default": default, "show_default": True}
    return click.option(
        "--ttl",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
        help="Seconds until it ends by itself.",
        **given,
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
    with Client.through(door(), Seconds(within)) as client:
        return client.ask(verb, **args)


def print_json(document: object) -> None:
    """Print a document for programs; names stay readable, whatever their alphabet."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
