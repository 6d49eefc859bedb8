"""`scripts/soak`: see `--help`."""

import argparse
import signal
import sys
import time

from scripts.soaking import box, gpu_run, machines
from scripts.soaking.found import FoundError
from scripts.soaking.tally import Tally


def main() -> int:
    """0 when all held, 1 when something was found, 130 on Ctrl-C."""
    given = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    tally = Tally()
    until = time.monotonic() + given.minutes * 60
    try:
        if given.gpu:
            print(
                f"soak: a card that games play on, too, seed {given.seed}, {given.minutes:g} minutes"
            )
            gpu_run.soak(given.seed, lambda: time.monotonic() >= until, tally)
        elif given.system:
            print(f"soak: a box under load, seed {given.seed}, {given.minutes:g} minutes")
            box.soak(given.seed, lambda: time.monotonic() >= until, tally, longest_s=given.longest)
        else:
            print(f"soak: histories from seed {given.seed} on, {given.minutes:g} minutes")
            chosen = [s for s in machines.sources() if given.only in (None, s.name)]
            if not chosen:
                names = ", ".join(source.name for source in machines.sources())
                print(f"soak: there is no {given.only}, only {names}", file=sys.stderr)
                return 2
            machines.soak(chosen, given.seed, lambda: time.monotonic() >= until, tally)
    except FoundError as found:
        tally.show()
        print(f"\n{found.report()}")
        return 1
    except KeyboardInterrupt:
        tally.show()
        print("soak: interrupted; nothing was found so far")
        return 130
    tally.show()
    print("soak: nothing was found")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Looks for histories that break what must hold: of the decisions alone, thousands of steps a "
        "second, or with --system of a whole box under load whose parts are killed and frozen, whose messages are "
        "lost, whose ports are stolen and whose disk is full.",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="N", help="how long; 0 = one round (10)"
    )
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() % 10**9, metavar="S", help="the first; any else"
    )
    parser.add_argument("--only", metavar="NAME", help="`dice`, or the name of one state machine")
    parser.add_argument("--system", action="store_true", help="faults on a whole box instead")
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="a box on a fake GPU that games play on, too, and that cannot always be read",
    )
    parser.add_argument(
        "--longest",
        type=float,
        default=11.0,
        metavar="S",
        help="with --system: nothing is frozen for longer; past 9 s nobody waits for it (11)",
    )
    return parser.parse_args()


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
