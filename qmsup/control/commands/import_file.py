"""`qmsup import`: a file of llama-swap as one of ours. llama-swap's own file is read as it is, too."""

import os
from pathlib import Path

import click


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there, where no file may be yet; default: print it.",
)
def command(*, file: Path, output: Path | None) -> None:
    """Convert a llama-swap configuration.

    The result means the same, and says in comments what was left out. Macros and ${env.X} stay as they are.
    """
    from qmsup import config

    text = config.import_file(file, os.environ)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        # Of the user alone: it may hold keys.
        with open(output, "x", encoding="utf-8", opener=_private) as written:
            written.write(text)
    except FileExistsError:
        raise click.UsageError(f"{output} is there already; name another file") from None
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from error
    click.echo(f"{output}: written; look at it with `qmsup check {output}`", err=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
