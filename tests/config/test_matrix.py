"""The `matrix` section: what it comes to in models, and every way it is refused."""

import pytest

from qmsup.config import parse
from qmsup.errors import ConfigError
from qmsup.ids import ModelId
from qmsup.spec import AllOf, AnyOf, Expression, MatrixSpec

MODELS = (
    "models: {gemma: {cmd: llama-server}, qwen: {cmd: llama-server, aliases: [qq]}, "
    "voice: {cmd: llama-server}, a/b: {cmd: llama-server}}\n"
)

GEMMA, QWEN, VOICE, OTHER = (ModelId(name) for name in ("gemma", "qwen", "voice", "a/b"))


def matrix(text: str) -> MatrixSpec:
    found = parse(f"{MODELS}matrix: {text}", name="f", env={}).matrix
    assert found is not None
    return found


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(MODELS + text, name="f", env={})
    return list(caught.value.problems)


def count(expression: Expression) -> int:
    match expression:
        case AnyOf(parts):
            return sum(map(count, parts))
        case AllOf(parts):
            total = 1
            for part in parts:
                total *= count(part)
            return total
        case _:
            return 1


def test_without_the_key_there_is_none() -> None:
    assert parse(MODELS).matrix is None


def test_short_names_and_sets_are_filled_in_and_keep_their_order() -> None:
    found = matrix(
        "{vars: {g: gemma, v: voice}, evict_costs: {v: 50, qwen: 3}, x-note: mine, "
        "sets: {pair: +either & v, either: g | qwen, other: a/b}}"
    )

    assert found == MatrixSpec(
        sets={
            "pair": AllOf((AnyOf((GEMMA, QWEN)), VOICE)),
            "either": AnyOf((GEMMA, QWEN)),
            "other": OTHER,
        },
        costs={VOICE: 50, QWEN: 3},
    )
    assert list(found.sets) == ["pair", "either", "other"]


def test_a_set_that_others_use_is_one_object() -> None:
    sets = matrix("{sets: {a: gemma | qwen, b: +a & voice, c: voice & +a}}").sets
    b, c = sets["b"], sets["c"]

    assert isinstance(b, AllOf)
    assert isinstance(c, AllOf)
    assert b.parts[0] is sets["a"] is c.parts[1]


def test_a_short_name_hides_a_model_of_that_name() -> None:
    assert matrix("{vars: {gemma: qwen}, sets: {a: gemma}}").sets == {"a": QWEN}


def test_groups_with_nothing_in_them_do_no_harm() -> None:
    assert parse(f"{MODELS}groups:\nmatrix: {{sets: {{a: gemma}}}}").matrix is not None


def test_macros_reach_the_sets() -> None:
    found = matrix("{sets: {a: '${MAIN} & voice'}}\nmacros: {MAIN: (gemma | qwen)}")

    assert found.sets["a"] == AllOf((AnyOf((GEMMA, QWEN)), VOICE))


ONE = "matrix: {sets: {a: gemma}"
WRONG: dict[str, list[str]] = {
    "matrix:": [
        "f:2: matrix.sets: is missing; write for example `sets: {all: (chat | code) & embed}`"],
    "matrix: {sets: }": [
        "f:2: matrix.sets: is missing; write for example `sets: {all: (chat | code) & embed}`"],
    "matrix: {sets: [gemma]}": [
        "f:2: matrix.sets: must be a mapping: keys with values, indented below it"],
    "matrix: gemma": ['f:2: matrix: must be a mapping: keys with values, indented below it, not "gemma"'],
    ONE + ", evictCosts: {}}": ["f:2: matrix.evictCosts: unknown key; did you mean evict_costs?"],
    ONE + "}\ngroups: {g: {members: [gemma]}}": [
        "f:2: matrix: cannot stand beside groups: both say what makes room for what; keep one of them"],
    ONE + ", vars: {g: gema, q: qq, v: zzz}}": [
        "f:2: matrix.vars.g: there is no model gema; did you mean gemma?",
        "f:2: matrix.vars.q: qq is an alias; write the model's name, qwen",
        "f:2: matrix.vars.v: there is no model zzz; add it under models, or remove it here"],
    ONE + ", vars: {'g g': gemma}}": [
        'f:2: matrix.vars."g g": a name in a set has no blanks and none of & | ( ) +; rename it'],
    ONE + ", evict_costs: {gemma: 0, qwen: -1, voice: 1.5, a/b: true}}": [
        "f:2: matrix.evict_costs.gemma: must be more than 0, not 0",
        "f:2: matrix.evict_costs.qwen: must be more than 0, not -1",
        "f:2: matrix.evict_costs.voice: must be a whole number, not 1.5",
        "f:2: matrix.evict_costs.a/b: must be a whole number, not true"],
    ONE + ", vars: {shortish: gemma}, evict_costs: {shortis: 2}}": [
        "f:2: matrix.evict_costs.shortis: there is no model shortis; did you mean shortish?"],
    ONE + ", vars: {g: gemma}, evict_costs: {g: 2, gemma: 3}}": [
        "f:2: matrix.evict_costs.gemma: model gemma has its cost already, under another name; keep one"],
    "matrix:\n  sets:\n    a: gemma | zzz\n    b: zzz & gemm": [
        "f:4: matrix.sets.a: there is no model zzz; add it under models, or remove it here",
        "f:5: matrix.sets.b: there is no model zzz; add it under models, or remove it here",
        "f:5: matrix.sets.b: there is no model gemm; did you mean gemma?"],
    "matrix: {sets: {a: gemma &}}": [
        "f:2: matrix.sets.a: a name is missing at the end; write one, or remove what joins it"],
    "matrix: {sets: {chatty: gemma, a: +chaty | +zzz}}": [
        "f:2: matrix.sets.a: there is no set chaty; did you mean chatty?",
        "f:2: matrix.sets.a: there is no set zzz; define it, or remove it here"],
    "matrix: {sets: {a: +a}}": ["f:2: matrix.sets.a: refers to itself (a → a); break the circle"],
    "matrix: {sets: {z: +b, a: gemma & +b, b: qwen | +c, c: +a}}": [
        "f:2: matrix.sets.b: refers to itself (b → c → a → b); break the circle"],
    "matrix: {sets: {a: , b: +a & gemma}}": [
        "f:2: matrix.sets.a: has no value; write one, or remove the line"],
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_matrix_is_refused_with_key_line_and_what_to_do(text: str) -> None:
    assert sorted(problems(text)) == sorted(WRONG[text])


def test_where_a_model_is_wrong_its_name_is_known_all_the_same() -> None:
    text = "models: {m: {cmd: [5], zzz: 1}}\nmatrix: {vars: {a: m}, sets: {s: a & m}}"

    with pytest.raises(ConfigError) as caught:
        parse(text, name="f")

    assert [line.split(": ")[1] for line in caught.value.problems] == [
        "models.m.cmd",
        "models.m.zzz",
    ]


def test_without_any_model_that_alone_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("models:\nmatrix: {vars: {g: gemma}, sets: {a: g & v}}", name="f")

    assert len(caught.value.problems) == 1


def test_a_hundred_thousand_combinations_are_read() -> None:
    factor = " | ".join(f"m{n}" for n in range(10))
    models = ", ".join(f"m{n}: {{cmd: llama-server}}" for n in range(10))
    sets = f"any: {factor}, five: +any & +any & +any & +any & +any"

    found = parse(f"models: {{{models}}}\nmatrix: {{sets: {{{sets}}}}}").matrix

    assert found is not None
    assert count(found.sets["five"]) == 100_000


GROWTH = {
    "that double at each step": "+s{} & +s{} & gemma",
    "that double in choices": "+s{} | +s{} | gemma",
}


@pytest.mark.parametrize("step", GROWTH.values(), ids=GROWTH)
def test_sets_that_grow_beyond_all_bounds_are_refused_where_they_do(step: str) -> None:
    sets = ["s0: gemma | qwen"]
    sets += [f"s{n + 1}: {step.format(n, n)}" for n in range(30)]

    (problem,) = problems(f"matrix: {{sets: {{{', '.join(sets)}}}}}")

    assert problem.endswith("grows too large with its sets filled in; write less, or flatter")


def test_sets_that_lead_through_too_many_others_are_refused() -> None:
    sets = [f"s{n}: +s{n + 1}" for n in range(40)]

    (problem,) = problems(f"matrix: {{sets: {{{', '.join(sets)}, s40: gemma}}}}")

    assert problem == (
        "f:2: matrix.sets.s0: leads through more than 32 other sets; write it flatter"
    )


def test_sets_that_nest_too_deep_together_are_refused() -> None:
    nested = "gemma"
    for joint in "&|" * 12:
        nested = f"(qwen {joint} {nested})"
    sets = [f"s{n + 1}: {nested.replace('gemma', f'+s{n}')}" for n in range(6)]

    (problem,) = problems(f"matrix: {{sets: {{s0: gemma, {', '.join(sets)}}}}}")

    assert problem.startswith("f:2: matrix.sets.s5: grows too large with its sets filled in")
