"""`qmsup doctor`: what is wrong on this box, and what to do."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click

from qmsup.daemon.doctor.finding import Finding, Grade

_COLOURS = {Grade.OK: "green", Grade.WARN: "yellow", Grade.BAD: "red"}
_WRONG, _UNUSABLE = 1, 2


@click.command(short_help="Find what is wrong on this box.")
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar="QMSUP_CONFIG",
    help="The configuration to look at.  [env: QMSUP_CONFIG]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(*, config: Path | None, as_json: bool) -> None:
    """Look at programs, model files, GPUs, ports, folders, limits and what was left behind.

    Nothing is changed. Programs named llama-server and sd-server are run for a moment to hear their version.
    The exit code is 0 when nothing is bad, 1 when something is, 2 when the configuration cannot be used.
    """
    from qmsup.daemon.doctor.examination import box_of, examine

    box = box_of(config)
    findings = examine(box)
    found = _show_json(findings) if as_json else _show(findings)
    if box.problems:
        sys.exit(_UNUSABLE)
    sys.exit(_WRONG if Grade.BAD in found else 0)


def _show_json(findings: Iterable[Finding]) -> list[Grade]:
    found = list(findings)
    is_well = all(finding.grade is not Grade.BAD for finding in found)
    document = {"ok": is_well, "findings": [asdict(finding) for finding in found]}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    return [finding.grade for finding in found]


def _show(findings: Iterable[Finding]) -> list[Grade]:
    """Each as it comes: some take a moment."""
    grades = []
    for finding in findings:
        grade = click.style(f"{finding.grade:<5}", fg=_COLOURS[finding.grade])
        click.echo(f"{grade} {finding.check:<14} {finding.about}: {finding.says}")
        if finding.do:
            click.echo(f"{'':<21}-> {finding.do}")
        grades.append(finding.grade)
    bad, warn = grades.count(Grade.BAD), grades.count(Grade.WARN)
    click.echo(f"\n{bad} bad, {warn} to look at, {len(grades) - bad - warn} well")
    return grades
