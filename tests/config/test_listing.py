"""The keys as a person reads them."""

from qmsup.config import listed_keys
from qmsup.config.foreign import NO_EFFECT
from qmsup.config.shape import SECTIONS, keys_of


def test_every_key_that_means_something_is_there_once() -> None:
    paths = [key.path for key in listed_keys()]

    known = {f"{place}.{key}".lstrip(".") for place in SECTIONS for key in keys_of(SECTIONS[place])}
    assert len(paths) == len(set(paths))
    assert set(paths) <= known
    assert {"vramBudgetGB", "models.NAME.cmd", "listeners.NAME.bind", "apiKeys.key"} <= set(paths)


def test_keys_without_an_effect_are_left_out() -> None:
    assert all(key.meaning != NO_EFFECT for key in listed_keys())
    assert "models.NAME.timeouts.connect" not in {key.path for key in listed_keys()}


def test_defaults_are_as_they_would_be_written() -> None:
    default = {key.path: key.default for key in listed_keys()}

    assert default["unloadTimeout"] == "10"
    assert default["scheduler.holdMs"] == "10000"
    assert default["groups.NAME.swap"] == "true"
    assert default["onExit"] == "stop"
    assert default["models"] == default["models.NAME.cmd"] == default["control"] == ""


def test_the_few_values_that_a_key_may_have_are_named() -> None:
    meaning = {key.path: key.meaning for key in listed_keys()}

    assert meaning["onExit"].endswith(" (keep, stop)")
    assert meaning["models.NAME.kind"].endswith(" (llama-server, sd-server, generic)")
    assert meaning["models.NAME.capabilities.in"].endswith(
        " (text, image, video, audio, embedding)"
    )
