"""The command `qmsup`, also `python -m qmsup`. A verb's module is imported when the verb is used, and no sooner."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

import click
from typing_extensions import override

from qmsup import __version__
from qmsup.control.exits import Exit, exit_of, lines_of
from qmsup.errors import QmsupError

_VERBS = {
    "serve": ("qmsup.daemon.commands.serve", "Run everything: the scheduler and its listeners."),
    "scheduler": ("qmsup.daemon.commands.scheduler", "Run the scheduler alone."),
    "listener": ("qmsup.listener.command", "Run one listener alone."),
    "check": ("qmsup.control.commands.check", "Check a configuration file."),
    "import": ("qmsup.control.commands.import_file", "Convert a llama-swap configuration."),
    "status": ("qmsup.control.commands.status", "Show the scheduler and its listeners."),
    "ps": ("qmsup.control.commands.ps", "Show the models, what they use and what they do."),
    "queue": ("qmsup.control.commands.line", "Show who waits, for how long and why."),
    "explain": (
        "qmsup.control.commands.explain",
        "Tell why a model or a request is where it is.",
    ),
    "load": ("qmsup.control.commands.load", "Load a model and wait until it is ready."),
    "unload": ("qmsup.control.commands.unload", "Stop models, all when none is named."),
    "pin": ("qmsup.control.commands.pin", "Have a model stay once it is loaded."),
    "unpin": ("qmsup.control.commands.unpin", "Let a pinned model be evicted again."),
    "drain": ("qmsup.control.commands.drain", "Take no more work."),
    "undrain": ("qmsup.control.commands.undrain", "Take work again."),
    "hosts": ("qmsup.control.commands.hosts", "Show the machines that routes choose from."),
    "leases": ("qmsup.control.commands.leases", "Show who uses which model now."),
    "lease": ("qmsup.control.commands.lease", "Keep a model in use for a job."),
    "renew": ("qmsup.control.commands.renew", "Keep a job's lease for longer."),
    "release": ("qmsup.control.commands.release", "End a job's lease."),
    "reload": ("qmsup.control.commands.reload", "Put the configuration file in force."),
    "events": ("qmsup.control.commands.events", "Show what was decided, and what changes."),
    "doctor": ("qmsup.daemon.commands.doctor", "Find what is wrong on this box."),
    "top": ("qmsup.control.commands.top", "Watch the box."),
    "keys": ("qmsup.control.commands.keys", "Make keys for control over TCP."),
    "logs": ("qmsup.control.commands.logs", "Show the end of a model's log, or of each model's."),
    "simulate": ("qmsup.simulation.command", "Run a trace through the scheduler in virtual time."),
}
"""Each verb, the module whose `command` it is, and its line in the list."""

_STDERR = 2


class _Verbs(click.Group):
    """Knows its commands by name and fetches them on demand, so that `qmsup ps` loads no web server."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        module, _ = _VERBS[cmd_name]
        return cast(
            "click.Command", import_module(module).command
        )  # a name in a string has no type

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="qmsup %(version)s")
def cli() -> None:
    """Make one GPU box serve many models.

    Exit codes: 0 done, 1 the scheduler refused, 2 usage or configuration, 3 no scheduler, 4 timed out.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process."""
    _open_what_is_closed()
    sys.exit(_guarded(lambda: cli.main(arguments, "qmsup", standalone_mode=False)))


def _open_what_is_closed() -> None:
    """Have descriptors 0 to 2, whoever closed them: a lock with such a number would be given what is said to people."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(fd, True)  # noqa: FBT003 - the function's own signature
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # as Python says that it was closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lives


def _guarded(run: Callable[[], object]) -> int:
    """The exit code of a run. An error becomes a line that says what to do; with -X dev also a traceback."""
    try:
        code = run()
    except click.exceptions.NoArgsIsHelpError as e:
        e.show()
        return e.exit_code
    except click.ClickException as e:
        # Help tells what may be typed, not what is wrong with a file.
        where = e.ctx.command_path if isinstance(e, click.UsageError) and e.ctx else "qmsup"
        see = "" if isinstance(e, click.FileError) else f" (see `{where} --help`)"
        click.echo(f"qmsup: {_one_line(e.format_message())}{see}", err=True)
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except (QmsupError, OSError) as e:
        if sys.flags.dev_mode:
            raise
        for line in lines_of(e):
            click.echo(f"qmsup: {line}", err=True)
        return exit_of(e)
    except Exception as e:
        # Our bug. A process that keeps a log gets the traceback there; a person gets one line.
        if sys.flags.dev_mode or logging.getLogger().hasHandlers():
            raise
        click.echo(
            f"qmsup: a bug of qmsup: {type(e).__name__}: {e}; please report what"
            " `python -X dev -m qmsup …` prints",
            err=True,
        )
        return Exit.REFUSED
    return code if isinstance(code, int) else Exit.OK


def _one_line(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")


if __name__ == "__main__":
    main()
