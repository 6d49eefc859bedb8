"""The command as a whole: its list of verbs, how it ends, and that it is quick."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from qmsup import __main__ as entry
from qmsup import __version__
from tests.control.conftest import Run

GOOD = """
models:
  chat:
    cmd: llama-server -m chat.gguf --port ${PORT}
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("verb", entry._VERBS)
def test_every_verb_has_a_command_of_its_name(verb: str) -> None:
    module, line = entry._VERBS[verb]

    command = importlib.import_module(module).command

    assert isinstance(command, click.Command)
    assert command.name in {verb, "command", None}
    assert (command.help or command.short_help or "").strip(), (
        "the verb's own --help says what it does"
    )
    assert line.endswith(".")


def test_help_lists_every_verb_with_a_line(qmsup: Run) -> None:
    ended = qmsup("--help")

    assert ended.code == 0
    for verb, (_, line) in entry._VERBS.items():
        assert f"{verb}  " in ended.out
        assert line in ended.out


def test_without_a_verb_the_help_is_shown_as_a_usage_error(qmsup: Run) -> None:
    ended = qmsup()

    assert ended.code == 2
    assert "Commands:" in ended.err


def test_a_verb_imports_no_more_than_it_needs(places: Path) -> None:
    script = (
        "import sys; from qmsup.__main__ import cli; cli.main(['ps', '--help'], standalone_mode=False);"
        " print([m for m in ('rich', 'pykka', 'werkzeug', 'gunicorn', 'yaml', 'pydantic', 'requests')"
        " if m in sys.modules])"
    )

    assert python("-c", script).stdout.splitlines()[-1] == "[]"


def test_the_version_is_told(qmsup: Run) -> None:
    assert qmsup("--version").out == f"qmsup {__version__}\n"


def test_it_runs_as_a_module(places: Path) -> None:
    ended = python("-m", "qmsup", "ps")

    assert ended.returncode == 3
    assert ended.stderr.startswith("qmsup: the scheduler at ipc://")
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sp"], "No such command 'sp'"),
        (["ps", "--jsno"], "No such option"),
        (["load"], "Missing argument 'MODEL'"),
        (["load", "chat", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["check"], "name the FILE to check"),
        (["check", "/no/such.yaml"], "does not exist"),
    ],
)
def test_wrong_usage_ends_with_2_in_one_line(qmsup: Run, arguments: list[str], says: str) -> None:
    ended = qmsup(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("--help`)\n")


def test_an_interrupt_ends_quietly(qmsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qmsup.control.options.ask", interrupted)

    ended = qmsup("ps")

    assert (ended.code, ended.err.strip()) == (130, "")


def test_a_bug_is_one_line_too(qmsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("qmsup.control.options.ask", broken)
    monkeypatch.setattr("logging.root.handlers", [])

    ended = qmsup("ps")

    assert ended.code == 1
    assert ended.err.startswith("qmsup: a bug of qmsup: ZeroDivisionError: by zero; please report")
    assert ended.err.count("\n") == 1


def test_in_development_mode_an_error_has_its_traceback(places: Path) -> None:
    ended = python("-X", "dev", "-m", "qmsup", "ps")

    assert "Traceback" in ended.stderr


def test_a_good_configuration_is_called_good(qmsup: Run, places: Path) -> None:
    file = places / "good.yaml"
    file.write_text(GOOD)

    ended = qmsup("check", str(file))

    assert ended.err == ""
    assert (ended.code, ended.out) == (0, f"{file}: good (1 model, 1 listener)\n")
    told = json.loads(qmsup("check", "--json", str(file)).out)
    assert told == {"ok": True, "problems": [], "remarks": []}


def test_what_means_less_here_is_noted(qmsup: Run, places: Path) -> None:
    file = places / "theirs.yaml"
    file.write_text(f"captureBuffer: 5\n{GOOD}")

    ended = qmsup("check", str(file))

    assert (ended.code, ended.out) == (0, f"{file}: good (1 model, 1 listener)\n")
    assert ended.err.startswith(f"note: {file}:1: captureBuffer: has no effect: ")
    assert len(json.loads(qmsup("check", "--json", str(file)).out)["remarks"]) == 1


def test_every_problem_of_a_configuration_is_a_line_on_stderr(qmsup: Run, places: Path) -> None:
    file = places / "bad.yaml"
    file.write_text("modles: {}\nstartPort: none\n")

    ended = qmsup("check", str(file))
    for_programs = qmsup("check", "--json", str(file))

    assert (ended.code, ended.out, for_programs.code) == (2, "", 2)
    problems = json.loads(for_programs.out)["problems"]
    assert len(problems) > 1
    assert ended.err.splitlines() == [f"qmsup: {problem}" for problem in problems]


def test_the_schema_is_json(qmsup: Run) -> None:
    assert "properties" in json.loads(qmsup("check", "--schema").out)


def test_the_keys_are_a_table_with_their_defaults(qmsup: Run) -> None:
    heading, *lines = qmsup("check", "--keys").out.splitlines()

    assert heading.split() == ["KEY", "DEFAULT", "MEANING"]
    assert ["startPort", "5800", "the"] in [line.split()[:3] for line in lines]
    assert len(json.loads(qmsup("check", "--keys", "--json").out)) == len(lines)
