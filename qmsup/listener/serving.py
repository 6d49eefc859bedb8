"""One version of the configuration, ready to judge requests. A worker has one at a time and swaps it as a whole."""

from dataclasses import dataclass
from pathlib import Path

from gunicorn.config import Config

from qmsup.errors import ConfigError
from qmsup.listener.deployment import Deployment, WsgiApp
from qmsup.listener.inline import Inline, inline_for
from qmsup.listener.link import Link
from qmsup.listener.relay.engine import RelayOptions
from qmsup.log import Log
from qmsup.spec import Spec

_log = Log("worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a request meets: keys, catalogue and limits are the app's, the rest is for its relay."""

    spec: Spec
    app: WsgiApp
    inline: Inline | None
    options: RelayOptions


def serving_of(spec: Spec, deployment: Deployment, link: Link, cfg: Config) -> Serving:
    """Make everything that depends on the configuration.

    Args:
        spec: has the deployment's listener.
        deployment: which listener this is, and how to make its app.
        link: for the app.
        cfg: gunicorn's.
    """
    app = deployment.make_app(spec, deployment.listener, link)
    options = RelayOptions(
        send_loading_state=spec.send_loading_state,
        loading_remarks=spec.loading_remarks,
        access_log=spec.access_log,
    )
    return Serving(spec=spec, app=app, inline=inline_for(app, cfg), options=options)


def first_serving(deployment: Deployment, link: Link, cfg: Config) -> Serving:
    """The same for a worker that begins: by what came in force since its master read the configuration, if anything.

    It will be told by the scheduler in a moment; until then a key that was taken away would be good here.
    """
    if (newer := deployment.newer_copy()) is not None:
        try:
            return read_serving(newer, deployment, link, cfg)
        except ConfigError as error:
            for problem in error.problems:
                _log.error("worker.keeps_configuration", file=str(newer), because=problem)
    return serving_of(deployment.spec, deployment, link, cfg)


def read_serving(path: Path, deployment: Deployment, link: Link, cfg: Config) -> Serving:
    """The same for a file. Takes its time: not for the loop's thread.

    Raises:
        ConfigError: this process cannot use it.
    """
    import qmsup.config

    spec = qmsup.config.load(path)
    if deployment.listener not in spec.listeners:
        raise ConfigError(
            (f"listener {deployment.listener} is not in it; this port stays as it was",)
        )
    return serving_of(spec, deployment, link, cfg)
