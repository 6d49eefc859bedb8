"""Models that are loaded because the configuration says so, before anybody asks."""

import pytest

from tests.support.box import fake, serving, until

pytestmark = pytest.mark.system


def test_models_to_preload_are_ready_before_anybody_asks() -> None:
    hooks = {"on_startup": {"preload": ["b", "one"]}}
    models = {"a": fake(aliases=["one"]), "b": fake(), "c": fake()}
    together = {"all": {"members": ["a", "b", "c"], "swap": False}}
    with serving(models, groups=together, hooks=hooks) as box:
        until(lambda: [box.states()[m] for m in ("a", "b")] == ["ready", "ready"])

        assert box.states()["c"] != "ready"


def test_one_that_cannot_be_preloaded_keeps_nobody_from_anything() -> None:
    hooks = {"on_startup": {"preload": ["bad", "good"]}}
    bad = {"cmd": "/nowhere/llama-server --port ${PORT}"}
    with serving({"bad": bad, "good": fake()}, hooks=hooks) as box:
        until(lambda: box.states()["good"] == "ready")

        assert "/nowhere/llama-server" in box.log()
        assert box.chat("good").status_code == 200
