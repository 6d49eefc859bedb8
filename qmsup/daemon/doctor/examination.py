"""All looks, one after the other: one that fails says so, and the others go on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import qmsup.config
from qmsup.daemon.doctor import (
    cards,
    configuration,
    folders,
    leftovers,
    limits,
    model_files,
    ports,
    programs,
    running,
)
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.finding import Check, Finding
from qmsup.errors import ConfigError

Look = Callable[[Box], Iterator[Finding]]

LOOKS: tuple[Look, ...] = (
    configuration.look,
    running.look,
    programs.look,
    model_files.look,
    cards.look,
    ports.look,
    folders.look,
    limits.look,
    leftovers.look,
)


def box_of(config: Path | None) -> Box:
    """This machine, and what the file says of it if one is named."""
    if config is None:
        return Box()
    try:
        read = qmsup.config.read_file(config)
        return Box(config=config, spec=read.spec, remarks=len(read.remarks))
    except ConfigError as error:
        return Box(config=config, problems=error.problems)
    except OSError as error:
        return Box(config=config, problems=(f"it cannot be read: {error.strerror}",))


def examine(box: Box, looks: tuple[Look, ...] = LOOKS) -> Iterator[Finding]:
    """Every finding, as it comes."""
    for look in looks:
        try:
            yield from look(box)
        except Exception as error:  # noqa: BLE001 - whatever this box has in store, the other looks are of use
            name = look.__module__.rpartition(".")[2]
            yield Check(name).warn(
                "the look itself",
                f"it failed: {type(error).__name__}: {error}",
                "please report this; the other findings stand",
            )
