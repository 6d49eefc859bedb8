"""`qmsup listener NAME`: one port, served by gunicorn with our worker class."""

import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from typing_extensions import override

from qmsup.errors import ConfigError
from qmsup.listener.deployment import Deployment, deployment_of
from qmsup.listener.worker import RelayWorker
from qmsup.log import Log
from qmsup.spec import ListenerSpec, Spec

_THREADS = 32
"""For requests that are slow to come, or large; they are made when they are needed."""
_MOST_CONNECTIONS = 20_000
_SPARE_DESCRIPTORS = 200
_HOURS = 3600

_requests = Log("relay")


class GunicornLog(Logger):
    """gunicorn's words in our log: one format, one stream."""

    @override
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
        self.error_log.propagate = True

    @override
    def access(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: Any) -> None:
        if self.cfg.accesslog is None:
            return
        _requests.info(
            "request",
            method=environ.get("REQUEST_METHOD"),
            path=environ.get("PATH_INFO"),
            status=int(str(resp.status).partition(" ")[0]),
            bytes=resp.sent,
            ms=round(request_time.total_seconds() * 1000),
        )


def gunicorn_settings(spec: Spec, listener: ListenerSpec) -> dict[str, object]:
    """What gunicorn is told for one listener; deploy/gunicorn/gunicorn.conf.py uses the same."""
    return {
        "bind": _bind(listener),
        "workers": listener.workers,
        "worker_class": RelayWorker,
        "threads": _THREADS,
        "worker_connections": _connections(),
        "keepalive": 75,
        # A reload or a stop cuts no stream: the supervisor above decides how long is too long.
        "graceful_timeout": 24 * _HOURS,
        "timeout": 120,
        "max_requests": 0,
        "limit_request_line": 8190,
        "limit_request_field_size": 16_380,
        "forwarder_headers": "",  # nobody tells us another path than that of the request
        "worker_tmp_dir": "/dev/shm" if Path("/dev/shm").is_dir() else None,  # noqa: S108 - memory, not disk
        "control_socket_disable": True,
        "proc_name": f"qmsup-{listener.name}",
        "logger_class": GunicornLog,
        "loglevel": spec.log_level,
        "accesslog": "-" if spec.access_log else None,
    }


class ListenerApplication(BaseApplication):
    """One listener as a gunicorn application."""

    def __init__(self, deployment: Deployment, **overrides: object) -> None:
        self.deployment = deployment
        self._overrides = overrides
        super().__init__()

    @override
    def load_config(self) -> None:
        spec = self.deployment.spec
        settings = gunicorn_settings(spec, spec.listeners[self.deployment.listener])
        for name, value in {**settings, **self._overrides}.items():
            self.cfg.set(name, value)

    @override
    def load(self) -> Callable[..., Any]:
        raise NotImplementedError("each worker makes its own app: see RelayWorker.load_wsgi")


@click.command(short_help="Run one listener alone.")
@click.argument("name")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    required=True,
    help="The configuration file.  [env: QMSUP_CONFIG]",
)
def command(name: str, config: Path) -> None:
    """Run the listener NAME alone, for a supervisor that runs the scheduler beside it."""
    from qmsup import log

    signal.signal(
        signal.SIGHUP, signal.SIG_IGN
    )  # until gunicorn listens to it; the file is read now
    try:
        deployment = deployment_of(name, config)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"qmsup: {problem}", err=True)
        sys.exit(2)
    log.set_up(level=deployment.spec.log_level, style=deployment.spec.log_format)
    ListenerApplication(deployment).run()


def _bind(listener: ListenerSpec) -> str:
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{host}:{listener.port}"


def _connections() -> int:
    """How many clients a worker accepts: each may need a second socket for its upstream."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(_THREADS + 1, min(_MOST_CONNECTIONS, (hard - _SPARE_DESCRIPTORS) // 2))
