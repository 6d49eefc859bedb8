from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors.copies import keep_copy
from qmsup.errors import ConfigError
from qmsup.listener.app import create
from qmsup.listener.deployment import deployment_from_environment, deployment_of

CONFIG = """
listeners:
  main: {bind: "127.0.0.1:8080"}
  agents: {bind: "127.0.0.1:8081"}
models:
  m: {cmd: "llama-server --port ${PORT}"}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "qmsup.yaml"
    file.write_text(CONFIG)
    return file


def test_a_deployment_names_its_listener_and_makes_our_app(config: Path) -> None:
    deployment = deployment_of("agents", config)

    assert deployment.listener == "agents"
    assert deployment.spec.listeners[deployment.listener].port == 8081
    assert deployment.make_app is create


def test_what_came_in_force_since_it_was_read_is_known(places: Path) -> None:
    config = places / "qmsup.yaml"
    config.write_text(CONFIG)
    keep_copy("models: {}", where.config_copies())
    deployment = deployment_of("main", config)
    assert deployment.newer_copy() is None

    second = keep_copy(CONFIG, where.config_copies())
    assert deployment.newer_copy() == second.path
    assert deployment_of("main", config).newer_copy() is None


def test_an_unknown_listener_is_named_with_the_nearest(config: Path) -> None:
    with pytest.raises(ConfigError, match="no listener 'agent'; did you mean agents"):
        deployment_of("agent", config)
    with pytest.raises(ConfigError, match="it has main, agents"):
        deployment_of("zzz", config)


def test_a_gunicorn_by_itself_reads_the_environment(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMSUP_CONFIG", str(config))
    monkeypatch.delenv("QMSUP_LISTENER", raising=False)
    assert deployment_from_environment().listener == "main"

    monkeypatch.setenv("QMSUP_LISTENER", "agents")
    assert deployment_from_environment().listener == "agents"


def test_without_a_configuration_it_says_which_variable_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("QMSUP_CONFIG", raising=False)

    with pytest.raises(ConfigError, match="QMSUP_CONFIG"):
        deployment_from_environment()
