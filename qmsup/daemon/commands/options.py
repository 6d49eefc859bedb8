"""What the verbs that start processes have in common."""

import sys
from pathlib import Path

import click

from qmsup.spec import Spec

config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    required=True,
    help="The configuration file.  [env: QMSUP_CONFIG]",
)


def load_or_exit(config: Path) -> Spec:
    """The configuration, or its problems on stderr and exit code 2."""
    import qmsup.config
    from qmsup.errors import ConfigError

    try:
        return qmsup.config.load(config)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"qmsup: {problem}", err=True)
        sys.exit(2)
