"""`qmsup simulate`: what a configuration would make of a trace, without a model, a GPU or a wait."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import click

from qmsup.core.scheduling.effects import Record
from qmsup.errors import ConfigError
from qmsup.simulation.children import LOAD, STOP
from qmsup.simulation.figures import Report
from qmsup.simulation.traces import Trace
from qmsup.spec import Spec
from qmsup.units import Seconds

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHOWN = 20
"""Bad lines that are named one by one: a file of another kind has nothing else."""

_seconds = click.FloatRange(min=0, max=1e9)


@click.command("simulate")
@click.argument("trace", required=False, type=_FILE)
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    help="The configuration file.  [env: QMSUP_CONFIG]",
)
@click.option(
    "--compare",
    "others",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Run another configuration beside it; may be repeated.",
)
@click.option("--tune", is_flag=True, help="Try other holds, patiences and budgets.")
@click.option(
    "--tries",
    type=click.IntRange(min=1, max=10_000),
    default=80,
    show_default=True,
    metavar="N",
    help="Runs that --tune may take.",
)
@click.option(
    "--timeline", is_flag=True, help="Print the scheduler's decisions, each with its time."
)
@click.option("--load", "loads", multiple=True, metavar="MODEL=S", help="How long a load takes.")
@click.option(
    "--load-times",
    type=_FILE,
    metavar="FILE",
    help='The same for many models, as JSON: {"chat": 4.5, "big": {"load": 30, "stop": 2, "fails": 1}}.',
)
@click.option("--default-load", type=_seconds, default=LOAD, show_default=True, metavar="S")
@click.option("--default-stop", type=_seconds, default=STOP, show_default=True, metavar="S")
@click.option(
    "--bad-lines",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="What to do when lines of the trace cannot be used, or name a model that is not configured.",
)
@click.option(
    "--from-log",
    type=_FILE,
    metavar="FILE",
    help="Make a trace of a log (logFormat: json), on stdout, and simulate nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def command(  # noqa: PLR0913 - an option each
    *,
    trace: Path | None,
    config: Path | None,
    others: tuple[Path, ...],
    tune: bool,
    tries: int,
    timeline: bool,
    loads: tuple[str, ...],
    load_times: Path | None,
    default_load: float,
    default_stop: float,
    bad_lines: str,
    from_log: Path | None,
    as_json: bool,
) -> None:
    """Run a trace through the scheduler in virtual time.

    TRACE has a JSON object a line: a request, with t, model and duration in seconds, or an agent's loop, with
    agent, model, rounds, duration and gap. The decisions are the real scheduler's; only time and the models are made
    up.
    """
    if from_log is not None:
        _print_recording(from_log)
        return
    if trace is None or config is None:
        raise click.UsageError("name the TRACE to run, and the configuration with -c FILE")
    if sum([bool(others), tune, timeline]) > 1:
        raise click.UsageError("--compare, --tune and --timeline are three questions; ask one")
    import qmsup.config
    from qmsup.simulation.pace_options import pace_of

    specs = {file: qmsup.config.load(file) for file in (config, *others)}
    spec = specs[config]
    items = _trace_in(trace, specs, is_strict=bad_lines == "refuse")

    def run(spec: Spec, on_record: Callable[[Seconds, Record], None] | None = None) -> Report:
        from qmsup.simulation.figures import report_of
        from qmsup.simulation.world import simulate

        pace = pace_of(load_times, loads, default=default_load, stop=default_stop, spec=spec)
        return report_of(simulate(items, spec, pace, on_record))

    if others:
        _compare({str(path): run(each) for path, each in specs.items()}, as_json=as_json)
    elif tune:
        _tune(spec, run, tries, as_json=as_json)
    elif timeline:
        _timeline(spec, run, as_json=as_json)
    else:
        _report(run(spec), as_json=as_json)


def _trace_in(file: Path, specs: Mapping[Path, Spec], *, is_strict: bool) -> Trace:
    from qmsup.simulation.lines import read_file
    from qmsup.simulation.model_names import what_is_wrong

    known = cache(partial(what_is_wrong, specs=specs))  # a trace names few models, many times
    reading = read_file(file, known)
    problems = reading.problems[:_SHOWN]
    if len(reading.problems) > _SHOWN:
        problems += (f"{file}: {len(reading.problems) - _SHOWN} more lines cannot be used",)
    if problems and is_strict:
        raise ConfigError((*problems, f"{file}: mend these lines, or pass --bad-lines skip"))
    for problem in problems:
        click.echo(f"qmsup: skipped {problem}", err=True)
    if not reading.trace and reading.problems:
        raise ConfigError((f"{file}: no line of it is left to run",))
    if not reading.trace:
        raise ConfigError((f"{file}: holds no request; write one a line",))
    return reading.trace


def _print_recording(log: Path) -> None:
    from qmsup.simulation.activity import recording_of

    with log.open("rb") as file:
        recording = recording_of(file)
    for line in recording.lines:
        click.echo(line)
    click.echo(
        f"qmsup: {len(recording.lines)} requests; {recording.passed_over} other lines passed over",
        err=True,
    )


def _report(report: Report, *, as_json: bool) -> None:
    from qmsup.simulation import tables

    if as_json:
        _print_json(asdict(report))
    else:
        tables.show_report(report)


def _compare(reports: dict[str, Report], *, as_json: bool) -> None:
    from qmsup.simulation import tables

    if as_json:
        _print_json({name: asdict(report) for name, report in reports.items()})
    else:
        tables.show_comparison(reports)


def _timeline(
    spec: Spec,
    run: Callable[[Spec, Callable[[Seconds, Record], None]], Report],
    *,
    as_json: bool,
) -> None:
    from qmsup.simulation.tables import say_record

    def say(now: Seconds, record: Record) -> None:
        click.echo(
            json.dumps({"t": round(now, 6), **asdict(record)}, ensure_ascii=False)
            if as_json
            else say_record(now, record)
        )

    run(spec, say)


def _tune(spec: Spec, run: Callable[[Spec], Report], tries: int, *, as_json: bool) -> None:
    from qmsup.simulation import tables
    from qmsup.simulation.tuning import Trial, tune

    def show(number: int, trial: Trial) -> None:
        click.echo(f"try {number:2}: {trial.setting.say()}: {trial.say()}", err=True)

    tuning = tune(spec, run, tries, show)
    if as_json:
        _print_json(
            {
                "tries": tuning.tries,
                "changes": [
                    {"key": c.key, "from": c.before, "to": c.after} for c in tuning.changes
                ],
                "now": asdict(tuning.start.report),
                "tuned": asdict(tuning.best.report),
            }
        )
        return
    tables.show_comparison({"as it is": tuning.start.report, "tuned": tuning.best.report})
    click.echo()
    click.echo(f"now: {tuning.start.say()}")
    for change in tuning.changes:
        click.echo(f"{change.key}: {change.before} -> {change.after}: {change.gain.say()}")
    if not tuning.changes:
        click.echo(f"nothing better was found in {tuning.tries} tries: leave it as it is")


def _print_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
