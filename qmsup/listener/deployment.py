"""What a gunicorn worker of ours has to know: the configuration, which listener it is, and how to make the app."""

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qmsup import places
from qmsup.errors import ConfigError
from qmsup.ids import ListenerName
from qmsup.listener.link import Link
from qmsup.listener.relay.watch import Order
from qmsup.spec import Spec

WsgiApp = Callable[[dict[str, Any], Any], Iterable[bytes] | Order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Carried by a gunicorn application as `deployment`.

    Attributes:
        make_app: called in each worker, after the fork; the app asks the scheduler through the link.
        copy: the youngest copy of a configuration that the scheduler had kept when this was read.
    """

    spec: Spec
    listener: ListenerName
    make_app: Callable[[Spec, ListenerName, Link], WsgiApp]
    copy: places.ConfigCopy | None = None

    def newer_copy(self) -> Path | None:
        """The configuration that the scheduler has put in force since this was read; None = none."""
        youngest = places.youngest_config_copy()
        return None if youngest is None or youngest == self.copy else youngest.path


def deployment_of(name: str, config: Path) -> Deployment:
    """Read the configuration for one listener.

    Raises:
        ConfigError: it cannot be used, or has no such listener.
    """
    import qmsup.config
    from qmsup.listener.app import create

    copy = places.youngest_config_copy()  # first: one that comes meanwhile is newer
    spec = qmsup.config.load(config)
    if name not in spec.listeners:
        near = difflib.get_close_matches(name, spec.listeners, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(spec.listeners)}"
        raise ConfigError((f"{config}: no listener {name!r}; {hint}",))
    return Deployment(spec=spec, listener=ListenerName(name), make_app=create, copy=copy)


def deployment_from_environment() -> Deployment:
    """The same for a gunicorn that was started by itself: `QMSUP_CONFIG`, and `QMSUP_LISTENER` (default `main`).

    Raises:
        ConfigError: see `deployment_of`.
    """
    config = os.environ.get("QMSUP_CONFIG")
    if not config:
        raise ConfigError(("QMSUP_CONFIG is not set: name the configuration file in it",))
    return deployment_of(os.environ.get("QMSUP_LISTENER", "main"), Path(config))
