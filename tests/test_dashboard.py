"""deploy/grafana/qmsup.json shows metrics that there are, and each of them."""

import json
import re
from pathlib import Path

from qmsup.actors import metrics
from qmsup.actors.metrics import Kind, Metric

_DASHBOARD = Path(__file__).parents[1] / "deploy" / "grafana" / "qmsup.json"
_ENDINGS = {Kind.SPREAD: "_bucket", Kind.COUNT: "", Kind.GAUGE: ""}


def _metrics() -> dict[str, Metric]:
    return {m.name: m for m in vars(metrics).values() if isinstance(m, Metric)}


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    panels = json.loads(_DASHBOARD.read_text())["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])

    shown = set(re.findall(r"\bqmsup_(\w+)", asked))

    assert shown == {f"{name}{_ENDINGS[m.kind]}" for name, m in _metrics().items()}


def test_each_label_that_a_legend_names_is_one_of_its_metric() -> None:
    for panel in json.loads(_DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            [name] = set(re.findall(r"\bqmsup_(\w+?)(?:_bucket)?\b", target["expr"]))
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= set(_metrics()[name].labels), panel["title"]


def test_panels_do_not_lie_over_each_other() -> None:
    panels = json.loads(_DASHBOARD.read_text())["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
