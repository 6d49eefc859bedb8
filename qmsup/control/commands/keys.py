"""`qmsup keys`: keys for control over TCP."""

from pathlib import Path

import click

from qmsup.transport import curve


@click.command("keys")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="this one",
    help="Where the files go.",
)
@click.option(
    "--allow",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also put the public key there: the folder that `control.curve.clients` names.",
)
def command(*, name: str, folder: Path, allow: Path | None) -> None:
    """Make a pair of keys, NAME.key and NAME.key_secret.

    One pair for the scheduler (`control.curve.secretKey` names its secret one), and one for each client, whose public
    key goes into the folder that `control.curve.clients` names. A secret key stays where it was made. With them,
    `--connect`, `--key-file` and `--server-key` have the commands here ask a scheduler elsewhere; so may programs
    (qmsup/wire/PROTOCOL.md has one).
    """
    public, secret = curve.make_keys(folder, name)
    click.echo(f"public: {public}\nsecret: {secret}")
    if allow is not None:
        click.echo(f"allowed: {curve.allow(public, allow)}")
