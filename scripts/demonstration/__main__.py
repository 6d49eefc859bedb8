"""The story the demo tells, step by step."""

import argparse
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from scripts.demonstration import asking, on_a_gpu, stage
from scripts.demonstration.serving import Serving
from scripts.demonstration.stage import Stage
from scripts.demonstration.telling import DemoError, say, step


def main() -> int:
    """Run the demo; 0 when all went as told."""
    asked = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    story = asked.add_mutually_exclusive_group()
    story.add_argument("--stay", action="store_true", help="leave it running until Ctrl-C")
    story.add_argument(
        "--gpu",
        action="store_true",
        help="another story: a game takes a part of a card, which is not there; needs a C compiler",
    )
    folder = stage.ROOT / ".demo"
    asked.add_argument(
        "--folder", type=Path, default=folder, help="where its files go (%(default)s)"
    )
    told = asked.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)  # so that everything is stopped then, too
    began = time.monotonic()
    try:
        with stage.claimed(told.folder.resolve()) as folder:
            if told.gpu:
                on_a_gpu.play(folder)
            else:
                _play(folder, stays=told.stay)
    except DemoError as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; everything was stopped", file=sys.stderr)
        return 130
    print(f"\nAll done in {time.monotonic() - began:.1f} s.")
    return 0


def _play(folder: Path, *, stays: bool) -> None:
    with step("Two tiny models with random weights, for a real llama-server"):
        for tag in stage.MODELS:
            path, is_new = stage.make_model(folder, tag)
            size = path.stat().st_size / 1e6
            say(f"{path} ({size:.1f} MB{'' if is_new else ', made before'})")

    with step("A configuration: 5 GB each, 8 GB in all, so one has to go for the other"):
        scene = stage.write_config(folder)
        say(f"{scene.config}:")
        say(scene.config.read_text())

    with step(f"$ qmsup serve -c {shlex.quote(str(scene.config))}"):
        serving = Serving(scene)
    with serving:
        with step("Waiting until both listeners and the scheduler are there"):
            serving.await_health()
            say(f"listening: {scene.url(0)}/v1 and {scene.url(1)}/v1")
        _ask_around(scene)
        _show(serving)
        if stays:
            _stay(scene, serving)
        with step("Ctrl-C for qmsup serve, and a look for what it left behind"):
            serving.stop()
            _look_for_remains(serving)


def _ask_around(scene: Stage) -> None:
    with step("alpha over port one: nothing runs yet, so it is started"):
        asking.ask(scene.url(0), "alpha")
    with step("bravo over port two: alpha is evicted for it"):
        asking.ask(scene.url(1), "bravo")
    with step("alpha over port one: and back"):
        asking.ask(scene.url(0), "alpha")
    with step("alpha over port two: it is there now, whichever port asks"):
        asking.ask(scene.url(1), "alpha")


def _show(serving: Serving) -> None:
    with step("$ qmsup ps"):
        say(serving.ask("ps"))
    with step("What the scheduler decided"):
        say("\n".join(serving.decisions()))


def _stay(scene: Stage, serving: Serving) -> None:
    print("\nIt stays until you press Ctrl-C. From another terminal:")
    for listener, model in enumerate(stage.MODELS):
        say("\n" + asking.as_curl(scene.url(listener), model))
    say(f"\n{serving.exports()} {stage.QMSUP} ps\n ")
    try:
        serving.wait()
    except KeyboardInterrupt:
        return
    raise DemoError(f"qmsup serve ended by itself:\n{serving.log_tail()}")


def _look_for_remains(serving: Serving) -> None:
    if remains := serving.remains():
        listed = ", ".join(f"{process.pid} ({process.name()})" for process in remains)
        raise DemoError(f"still running: {listed}")
    if taken := serving.taken_ports():
        raise DemoError(f"ports still taken: {taken}")
    say("no process is left, and both ports are free")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
