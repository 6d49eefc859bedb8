"""`scripts/bench`: see `--help`."""

import argparse
import http.client
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from qmsup.errors import QmsupError
from scripts.benchmark import groups, table
from scripts.benchmark.course import Course
from scripts.benchmark.programs import BenchError, Programs
from scripts.benchmark.targets import Row

_ROOT = Path(__file__).resolve().parents[2]
_FIRST_PORT = 23_000  # below the ports that the kernel gives to outgoing connections
_FILES_NEEDED = 8192
_ENDING = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """0 when all was measured, whether or not targets are kept; 1 when it could not; 130 on Ctrl-C."""
    given = _arguments()
    _raise_file_limit()
    for number in _ENDING:
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="qmb-"))
    programs = Programs(folder, first_port=given.first_port)
    course = Course(
        programs=programs,
        models=folder / "models",
        rounds=given.rounds or (2 if given.quick else 5),
        quick=given.quick,
        with_qmsup=not given.peers_only,
    )
    code = 1
    try:
        _make_models(course.models)
        _report(course, groups.run_all(course), given.json)
        code = 0
    except KeyboardInterrupt:
        course.say("interrupted: stopping what was started")
        code = 130
    except (BenchError, QmsupError, OSError, http.client.HTTPException) as error:
        print(f"bench: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        for number in _ENDING:
            signal.signal(
                number, signal.SIG_IGN
            )  # stopping takes seconds at most, and must be whole
        programs.stop_all()
        for left in programs.left_behind:
            print(f"bench: was left behind, and killed: {left}", file=sys.stderr)
        if given.keep or (code == 1):
            print(f"bench: logs are kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures qmsup beside a child asked directly, llama-server's router mode and nginx, in "
        "one run, in turn, and prints medians and ratios. About five minutes; close other programs.",
    )
    parser.add_argument("--quick", action="store_true", help="short and rough, under two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    parser.add_argument("--rounds", type=int, metavar="N", help="default 5, with --quick 2")
    parser.add_argument("--peers-only", action="store_true", help="leave qmsup out")
    parser.add_argument("--keep", action="store_true", help="keep the logs and name their folder")
    parser.add_argument(
        "--first-port", type=int, default=_FIRST_PORT, metavar="N", help="default %(default)s"
    )
    return parser.parse_args()


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FILES_NEEDED:
        raise SystemExit(
            f"bench: needs {_FILES_NEEDED} open files, may have {hard}: raise `ulimit -Hn`"
        )
    if soft < _FILES_NEEDED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES_NEEDED, hard))


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _make_models(folder: Path) -> None:
    folder.mkdir()
    for seed, letter in enumerate("ab", start=1):
        argv = [
            sys.executable,
            str(_ROOT / "scripts" / "make_tiny_gguf.py"),
            str(folder / f"tiny-{letter}.gguf"),
        ]
        made = subprocess.run(
            [*argv, "--tag", f"tag{letter}", "--seed", str(seed)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise BenchError(f"could not make a tiny model:\n{made.stderr}")


def _report(course: Course, rows: list[Row], file: Path | None) -> None:
    about = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "machine": platform.platform(),
        "python": platform.python_version(),
        "rounds": course.rounds,
        "quick": course.quick,
        "load average at the end": os.getloadavg()[0],
        **course.about,
        "troubles": course.troubles,
    }
    print(table.rendered(rows))
    print(
        "\n" + "\n".join(f"{name}: {value}" for name, value in about.items() if name != "troubles")
    )
    for trouble in course.troubles:
        print(f"trouble: {trouble}")
    if file:
        file.write_text(json.dumps(table.as_object(rows, about), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
