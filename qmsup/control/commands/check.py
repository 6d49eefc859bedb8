"""`qmsup check`: is this configuration usable, and if not, what is to be done."""

from dataclasses import asdict
from pathlib import Path

import click

from qmsup.control import options, table
from qmsup.control.exits import Exit
from qmsup.control.table import Column
from qmsup.errors import ConfigError

_COLUMNS = (Column("KEY"), Column("DEFAULT"), Column("MEANING"))


@click.command("check")
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--schema", is_flag=True, help="Print the JSON Schema of configurations, for editors."
)
@click.option("--keys", is_flag=True, help="Print every key with its default and what it means.")
@options.as_json
@click.pass_context
def command(
    context: click.Context, *, file: Path | None, schema: bool, keys: bool, as_json: bool
) -> None:
    """Check a configuration file.

    Every problem is named with its key, its line and what to do; the exit code is 2 then. What is right, but means
    less here than in llama-swap or cannot be kept to, is told as well.
    """
    if schema:
        from qmsup import config

        options.print_json(config.json_schema())
    elif keys:
        _list_keys(as_json=as_json)
    elif file is None:
        raise click.UsageError("name the FILE to check, or ask for the --keys or the --schema")
    elif as_json:
        context.exit(_check_for_programs(file))
    else:
        _check(file)


def _list_keys(*, as_json: bool) -> None:
    from qmsup import config

    keys = config.listed_keys()
    if as_json:
        options.print_json([asdict(key) for key in keys])
    else:
        table.show(_COLUMNS, [(k.path, table.text_of(k.default), k.meaning) for k in keys])


def _check(file: Path) -> None:
    from qmsup import config

    read = config.read_file(file)
    for remark in read.remarks:
        click.echo(f"note: {remark}", err=True)
    spec = read.spec
    models, listeners = len(spec.models), len(spec.listeners)
    click.echo(f"{file}: good ({_count(models, 'model')}, {_count(listeners, 'listener')})")


def _check_for_programs(file: Path) -> Exit:
    from qmsup import config

    try:
        read = config.read_file(file)
    except ConfigError as e:
        options.print_json({"ok": False, "problems": e.problems, "remarks": []})
        return Exit.USAGE
    options.print_json({"ok": True, "problems": [], "remarks": read.remarks})
    return Exit.OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
