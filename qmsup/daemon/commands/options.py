"""What the verbs that start processes have in common."""

from pathlib import Path

import click

config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    required=True,
    help="The configuration file.  [env: QMSUP_CONFIG]",
)
