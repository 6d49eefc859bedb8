"""The story of `--gpu`: a game takes a part of the card, and the models make room."""

import json
import shlex
import sys
from pathlib import Path

from scripts.demonstration import asking, stage
from scripts.demonstration.card import Card
from scripts.demonstration.serving import Serving
from scripts.demonstration.stage import Stage
from scripts.demonstration.telling import say, step

_FAKE_CHILD = stage.ROOT / "tests" / "fakes" / "child.py"
_MODELS = ("alpha", "bravo", "charlie")
_SIZE = 6  # GB, of each model
_GAME = 8
_LOADS_FOR = 0.6  # seconds


def play(folder: Path) -> None:
    """Tell it.

    Raises:
        DemoError: something did not go as told.
    """
    with step("A card of 24 GB that is not there: a driver library of ours tells of it"):
        card = Card(folder / "card")
        say(card.shares({}))
    with step(f"Three models of {_SIZE} GB, played by programs that take so much of the card"):
        scene = _write_config(folder)
        say(scene.config.read_text())
    with step(f"$ qmsup serve -c {shlex.quote(str(scene.config))}"):
        serving = Serving(scene, card.environment)
    with serving:
        with step("Waiting until listeners, scheduler and the first look at the card are there"):
            serving.await_health()
            say(f"the models may use {_ceiling(serving, 0)}")
        _fill(scene, serving, card)
        _play_a_game(scene, serving, card)
        with step("What the scheduler decided"):
            say("\n".join(serving.decisions()))
        with step("Ctrl-C for qmsup serve"):
            serving.stop()
            say(card.shares({}))


def _fill(scene: Stage, serving: Serving, card: Card) -> None:
    for model in ("alpha", "bravo"):
        with step(f"{model}: there is room"):
            asking.ask(scene.url(0), model)
            _show(serving, card)


def _play_a_game(scene: Stage, serving: Serving, card: Card) -> None:
    before = serving.count_decisions()
    with card.game(_GAME) as pid:
        with step(f"A game takes {_GAME} GB, and has never heard of qmsup"):
            say(f"the models may now use {_ceiling(serving, before)}")
            _show(serving, card, {pid: "game"})
        with step("charlie: beside the game two models fit, not three; alpha was idle longest"):
            asking.ask(scene.url(0), "charlie")
            _show(serving, card, {pid: "game"})
        before = serving.count_decisions()
    with step("The game ends"):
        say(f"the models may use {_ceiling(serving, before)} again")
        _show(serving, card)
    with step("alpha: there is room for all three"):
        asking.ask(scene.url(0), "alpha")
        _show(serving, card)


def _ceiling(serving: Serving, after: int) -> str:
    """What the next reading that changes it makes of what our models may use."""
    told = str(serving.await_decision("memory.ceiling", after)["because"])
    return f"{int(told.removesuffix(' MiB')) / 1024:.1f} GB"


def _show(serving: Serving, card: Card, others: dict[int, str] | None = None) -> None:
    models = json.loads(serving.ask("ps", "--json"))["models"]
    names = {model["pid"]: model["name"] for model in models if model["pid"] is not None}
    say(card.shares(names | (others or {})))


def _write_config(folder: Path) -> Stage:
    scene = Stage(folder=folder, ports=stage.free_ports())
    lines = [
        "vramBudgetGB: 24",
        "listeners:",
        f'  one: {{bind: "127.0.0.1:{scene.ports[0]}", workers: 1}}',
        f'  two: {{bind: "127.0.0.1:{scene.ports[1]}", workers: 1}}',
        "models:",
    ]
    for name in _MODELS:
        program = shlex.join([sys.executable, "-S", str(_FAKE_CHILD), "--name", name])
        taken = f"--vram {_SIZE * 1024} --load-seconds {_LOADS_FOR}"
        lines += [
            f"  {name}:",
            f"    cmd: {json.dumps(f'{program} --port ${{PORT}} {taken}')}",
            "    kind: generic",
            "    checkEndpoint: /health",
            f"    estVramGB: {_SIZE}",
        ]
    scene.config.write_text("\n".join(lines) + "\n")
    return scene
