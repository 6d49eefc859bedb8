import logging
import os
import resource
import runpy
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from gunicorn.config import Config

from qmsup.ids import ListenerName
from qmsup.listener.command import GunicornLog, command, gunicorn_settings
from qmsup.listener.worker import RelayWorker
from qmsup.spec import ListenerSpec, Spec
from tests.support.relaying import wait_until
from tests.support.servers import free_port

_ROOT = Path(__file__).parents[2]
MAIN = ListenerSpec(name=ListenerName("main"), host="::1", port=8080, workers=3)
SPEC = Spec(models={}, listeners={MAIN.name: MAIN})


def _config(folder: Path, port: int) -> Path:
    file = folder / "qmsup.yaml"
    file.write_text(
        f'listeners: {{main: {{bind: "127.0.0.1:{port}", workers: 1}}}}\n'
        'models: {m: {cmd: "llama-server --port ${PORT}"}}\n'
    )
    return file


def test_gunicorn_takes_every_setting() -> None:
    config = Config()

    for name, value in gunicorn_settings(SPEC, MAIN).items():
        config.set(name, value)

    assert config.worker_class is RelayWorker
    assert config.address == [("::1", 8080)]
    assert (config.workers, config.max_requests) == (3, 0)
    assert config.graceful_timeout >= 3600
    assert config.control_socket_disable


def test_a_worker_takes_no_more_clients_than_it_has_descriptors_for() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    connections = gunicorn_settings(SPEC, MAIN)["worker_connections"]

    assert isinstance(connections, int)
    assert hard == resource.RLIM_INFINITY or 2 * connections < hard


@pytest.mark.parametrize(
    ("name", "text"),
    [("agents", "no listener 'agents'; it has main"), ("man", "did you mean main")],
)
def test_a_listener_that_is_not_configured_is_a_usage_error(
    tmp_path: Path, name: str, text: str
) -> None:
    result = CliRunner().invoke(command, [name, "-c", str(_config(tmp_path, 8080))])

    assert result.exit_code == 2
    assert text in result.stderr


def test_problems_of_the_configuration_are_told_and_end_with_two(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["main", "-c", str(tmp_path / "none.yaml")])

    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "qmsup", "listener", "main", "-c", "{config}"],
        [
            "-m",
            "gunicorn",
            "-c",
            "{root}/deploy/gunicorn/gunicorn.conf.py",
            "qmsup.listener.app:create()",
        ],
    ],
    ids=["qmsup listener", "gunicorn"],
)
def test_both_ways_to_start_one_serve(places: Path, arguments: list[str]) -> None:
    import requests

    port = free_port()
    config = _config(places, port)
    (places / "run").mkdir()
    process = subprocess.Popen(
        [sys.executable, *(a.format(config=config, root=_ROOT) for a in arguments)],
        env={**os.environ, "QMSUP_CONFIG": str(config)},
        cwd=places,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}/v1/models"

        def answers() -> bool:
            assert process.poll() is None
            try:
                return requests.get(url, timeout=5, headers={"Connection": "close"}).ok
            except requests.ConnectionError:
                return False

        wait_until(answers)
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_the_deployed_configuration_file_names_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMSUP_CONFIG", str(_config(tmp_path, 8080)))
    before = logging.getLogger().handlers[:]
    try:
        settings = runpy.run_path(str(_ROOT / "deploy/gunicorn/gunicorn.conf.py"))
    finally:
        logging.getLogger().handlers[:] = before

    assert settings["worker_class"] is RelayWorker
    assert settings["bind"] == "127.0.0.1:8080"


def test_ordinary_requests_have_the_same_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    config = Config()
    config.set("accesslog", "-")
    config.set("logger_class", GunicornLog)
    caplog.set_level(logging.INFO, "qmsup.relay")

    GunicornLog(config).access(
        SimpleNamespace(status="200 OK", sent=12),
        None,
        {"REQUEST_METHOD": "GET", "PATH_INFO": "/v1/models", "QUERY_STRING": "secret"},
        timedelta(milliseconds=3),
    )

    (line,) = [record for record in caplog.records if record.message == "request"]
    assert line.__dict__["qmsup_fields"] == {
        "method": "GET",
        "path": "/v1/models",
        "status": 200,
        "bytes": 12,
        "ms": 3,
    }
