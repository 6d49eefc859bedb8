"""The configuration: good, with mistakes, or none; and models that a budget cannot reckon with."""

from dataclasses import replace
from pathlib import Path

from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.configuration import look
from qmsup.ids import ModelId
from qmsup.spec import GroupSpec, MatrixSpec, Pool, Spec
from qmsup.units import MiB
from tests.support.doctoring import box_with, graded, model

FILE = Path("/etc/qmsup.yaml")


def test_a_good_one_is_well_and_none_is_a_pity() -> None:
    assert graded(look(box_with(model("x")))) == [("ok", str(FILE))]
    assert graded(look(Box())) == [("warn", "none")]


def test_where_to_read_what_is_no_mistake_is_told() -> None:
    [finding] = look(replace(box_with(model("x")), remarks=2))

    assert finding.says == "good: models: 1, listeners: 0; notes: 2, which `qmsup check` tells"


def test_each_problem_is_a_finding() -> None:
    problems = ("models.a.cmd: missing", "ttl: no number")

    found = list(look(Box(config=FILE, problems=problems)))

    assert [finding.says for finding in found] == [*problems]
    assert graded(found) == [("bad", str(FILE))] * 2


def test_the_file_is_named_once() -> None:
    problems = (f"{FILE}: is empty", f"{FILE}:3:1: not valid YAML", f"{FILE}:4: ttl: no number")

    found = look(Box(config=FILE, problems=problems))

    told = ["is empty", "line 3:1: not valid YAML", "line 4: ttl: no number"]
    assert [finding.says for finding in found] == told


def test_models_of_unknown_or_hopeless_size_are_named_where_a_budget_counts() -> None:
    models = [
        model("x", name="unknown"),
        replace(model("x", name="huge"), est_vram=MiB(9000)),
        replace(model("x", name="fits"), est_vram=MiB(8000)),
        model("x", name="on_cpu"),
    ]
    in_ram = GroupSpec(id="cpu", members=(ModelId("on_cpu"),), pool=Pool.RAM)
    spec = Spec(models={m.id: m for m in models}, groups=(in_ram,), vram_budget=MiB(8000))

    assert graded(look(Box(config=FILE, spec=spec)))[1:] == [("warn", "huge"), ("warn", "unknown")]
    without = replace(spec, vram_budget=None)
    by_matrix = replace(spec, matrix=MatrixSpec(sets={}))
    for other in (without, by_matrix):
        assert len(list(look(Box(config=FILE, spec=other)))) == 1


def test_a_model_that_no_ram_budget_has_room_for_is_named_with_what_to_do() -> None:
    slow = replace(model("x", name="slow"), est_ram=MiB(9728))
    in_ram = GroupSpec(id="cpu", members=(slow.id,), pool=Pool.RAM)
    spec = Spec(models={slow.id: slow}, groups=(in_ram,), ram_budget=MiB(8192))

    found = list(look(Box(config=FILE, spec=spec)))

    assert graded(found)[1:] == [("warn", "slow")]
    assert found[1].says.startswith("9.5 GB is more than ramBudgetGB, 8 GB: ")
