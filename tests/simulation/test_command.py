"""`qmsup simulate`, as a person types it, on the examples that come with qmsup."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qmsup.__main__ import cli
from qmsup.errors import ConfigError
from tests.support.tree import ROOT

TRACES = ROOT / "deploy" / "examples" / "traces"
AGENTS = TRACES / "two-agents.jsonl"
CONFIG = TRACES / "two-agents.yaml"
NO_HOLD = TRACES / "two-agents-no-hold.yaml"
EXAMPLES = sorted(TRACES.glob("*.jsonl"))


def simulate(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(
        cli, ["simulate", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("trace", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_with_its_configuration(trace: Path) -> None:
    done = simulate(trace, "-c", trace.with_suffix(".yaml"))

    heading, *models, total = done.stdout.split("\n\n")[0].splitlines()
    assert heading.split()[:3] == ["MODEL", "REQUESTS", "SERVED"]
    assert len(models) == 2
    assert total.split()[0] == "all"
    assert "never answered" not in done.stdout
    assert len(EXAMPLES) == 3


# What is typed on the page of the examples, with what is printed then.
SHOWN = re.findall(
    r"^```console\n\$ qmsup simulate ([^\n]+)\n([^$`].+?)^```$",
    (TRACES / "README.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("arguments", "told"), SHOWN, ids=[typed for typed, _ in SHOWN])
def test_the_page_of_the_examples_shows_what_is_printed(
    arguments: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TRACES)

    done = simulate(*arguments.split())

    shown, is_cut, _ = told.partition("…\n")
    assert done.stdout.startswith(shown) if is_cut else done.stdout == shown
    assert len(SHOWN) == 5


def test_two_agents_cost_two_loads_with_holds_and_forty_without() -> None:
    done = simulate(AGENTS, "-c", CONFIG, "--compare", NO_HOLD, "--default-load", "1", "--json")

    reports = json.loads(done.stdout)
    loads = [report["total"]["loads"] for report in reports.values()]
    assert list(reports) == [str(CONFIG), str(NO_HOLD)]
    assert loads[0] == 2
    assert loads[1] > 20


def test_a_comparison_is_one_table_with_a_line_for_each_configuration() -> None:
    done = simulate(AGENTS, "-c", CONFIG, "--compare", NO_HOLD)

    heading, *lines = done.stdout.splitlines()
    assert heading.split()[0] == "CONFIG"
    assert [line.split()[0] for line in lines] == [str(CONFIG), str(NO_HOLD)]


def test_tuning_says_what_it_would_change_and_what_that_gains() -> None:
    done = simulate(AGENTS, "-c", NO_HOLD, "--tune", "--default-load", "1")

    assert "holdMs: 0 -> 1000: mean wait" in done.stdout
    assert "vramBudgetGB: 24 -> 37: mean wait" in done.stdout
    assert "try  1: hold 0 s, patience 300 s, budget 24.0 GB: mean wait" in done.stderr


def test_tuning_for_programs_has_the_changes_and_both_reports() -> None:
    done = simulate(AGENTS, "-c", NO_HOLD, "--tune", "--tries", "12", "--json")

    answer = json.loads(done.stdout)
    assert answer["changes"][0]["key"] == "holdMs"
    assert answer["tuned"]["total"]["loads"] < answer["now"]["total"]["loads"]


def test_a_tuning_that_finds_nothing_says_so() -> None:
    done = simulate(AGENTS, "-c", CONFIG, "--tune", "--tries", "1")

    assert "nothing better was found in 1 tries" in done.stdout


def test_the_timeline_has_every_decision_in_order() -> None:
    done = simulate(AGENTS, "-c", CONFIG, "--timeline", "--load", "code=2")

    times = [float(line.split()[1]) for line in done.stdout.splitlines()]
    assert times == sorted(times)
    assert "+     2.000 s  swap.done        model=code because=2.000 s" in done.stdout


def test_the_timeline_for_programs_is_an_object_a_line() -> None:
    done = simulate(AGENTS, "-c", CONFIG, "--timeline", "--json")

    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"t", "decision", "model", "evicts", "because"} <= records[0].keys()


def test_bad_lines_are_refused_each_named_or_skipped_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    trace = tmp_path / "day.jsonl"
    trace.write_text('{"t": 0, "model": "code", "duration": 1}\nnonsense\n{"t": 1}\n')

    with pytest.raises(ConfigError) as refused:
        simulate(trace, "-c", CONFIG)
    skipped = simulate(trace, "-c", CONFIG, "--bad-lines", "skip", "--json")

    second, third, advice = refused.value.problems
    assert second.startswith(f"{trace}:2: is no JSON")
    assert third.startswith(f"{trace}:3: model: is missing")
    assert advice.endswith("or pass --bad-lines skip")
    assert json.loads(skipped.stdout)["total"]["requests"] == 1
    assert f"qmsup: skipped {second}" in skipped.stderr


def test_a_model_that_one_of_the_configurations_lacks_is_named_with_its_line(
    tmp_path: Path,
) -> None:
    trace, other = tmp_path / "day.jsonl", tmp_path / "other.yaml"
    trace.write_text(
        '{"t": 0, "model": "cod", "duration": 1}\n{"t": 1, "model": "code", "duration": 1}\n'
    )
    other.write_text("models: {plan: {cmd: llama-server -m p.gguf}}\n")

    with pytest.raises(ConfigError) as refused:
        simulate(trace, "-c", CONFIG)
    skipped = simulate(trace, "-c", CONFIG, "--bad-lines", "skip", "--json")
    with pytest.raises(ConfigError) as compared:
        simulate(trace, "-c", CONFIG, "--compare", other, "--bad-lines", "skip")

    assert refused.value.problems[0] == (
        f"{trace}:1: model: no model 'cod' is configured; did you mean 'code'? (in {CONFIG})"
    )
    assert json.loads(skipped.stdout)["total"]["requests"] == 1
    assert compared.value.problems == (f"{trace}: no line of it is left to run",)


@pytest.mark.parametrize("bad_lines", ["refuse", "skip"])
def test_a_file_of_another_kind_is_not_told_line_by_line(bad_lines: str, tmp_path: Path) -> None:
    trace = tmp_path / "novel.txt"
    trace.write_text("once upon a time\n" * 1000)

    with pytest.raises(ConfigError) as refused:
        simulate(trace, "-c", CONFIG, "--bad-lines", bad_lines)

    assert len(refused.value.problems) < 25


def test_a_recorded_log_becomes_a_trace_that_can_be_simulated(tmp_path: Path) -> None:
    log, trace = tmp_path / "log.json", tmp_path / "day.jsonl"
    line = {"time": 1e9, "event": "request", "model": "code", "ms": 900, "wait_ms": 100}
    log.write_text(json.dumps(line) + "\nnoise\n")

    made = simulate("--from-log", log)
    trace.write_text(made.stdout)
    done = simulate(trace, "-c", CONFIG, "--json")

    assert made.stderr == "qmsup: 1 requests; 1 other lines passed over\n"
    assert json.loads(made.stdout)["duration"] == 0.8
    assert json.loads(done.stdout)["total"]["served"] == {"finished": 1}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name the TRACE"),
        ((AGENTS,), "name the TRACE to run, and the configuration"),
        ((AGENTS, "-c", CONFIG, "--tune", "--timeline"), "three questions; ask one"),
        ((AGENTS, "-c", CONFIG, "--load", "ghost=1"), "no model 'ghost' is configured"),
        ((AGENTS, "-c", CONFIG, "--bad-lines", "mend"), "'mend' is not one of"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: tuple[str | Path, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QMSUP_CONFIG", raising=False)

    done = CliRunner().invoke(cli, ["simulate", *map(str, arguments)])

    assert done.exit_code == 2
    assert says in done.output
