"""Macros: what they stand for, and what is wrong with them, told once and where it stands."""

from collections.abc import Mapping

import pytest

from qmsup.config.document import Value, read
from qmsup.config.macros import expand
from qmsup.config.problems import TooManyProblemsError


def expanded(text: str, env: Mapping[str, str] | None = None) -> Value:
    document = read(text)
    tree = expand(document, env or {})
    assert document.problems.lines("f", document.lines) == ()
    return tree


def problems(text: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    document = read(text)
    expand(document, env or {})
    return document.problems.lines("f", document.lines)


def model(text: str, env: Mapping[str, str] | None = None) -> dict[str, Value]:
    tree = expanded(text, env)
    assert isinstance(tree, dict)
    models = tree["models"]
    assert isinstance(models, dict)
    found = models["m"]
    assert isinstance(found, dict)
    return found


def test_macros_nest_in_any_order_and_keep_numbers_as_written() -> None:
    text = """
macros: {all: "${bin} -c ${ctx} -t ${temp} -x ${flag}", bin: llama-server, ctx: 4096, temp: 0.70, flag: true}
models: {m: {cmd: "${all} --port ${PORT}"}}
"""
    assert model(text)["cmd"] == "llama-server -c 4096 -t 0.70 -x true --port ${PORT}"


def test_a_models_own_macros_win_also_inside_those_of_the_top_level() -> None:
    text = """
macros: {args: "-c ${ctx}", ctx: 1}
models: {m: {macros: {ctx: 2}, cmd: "x ${args}"}}
"""
    assert model(text)["cmd"] == "x -c 2"


def test_a_macro_may_lean_on_one_that_only_models_define() -> None:
    text = """
macros: {args: "-c ${ctx}"}
models: {m: {macros: {ctx: 2}, cmd: "x ${args}"}, n: {cmd: "x ${args}"}}
"""
    assert problems(text) == (
        "f:3: models.n.cmd: by ${args}: unknown macro ${ctx}; define it under macros",
    )


def test_the_models_name_is_known_inside_it() -> None:
    text = """
macros: {path: "/m/${MODEL_ID}.gguf"}
models: {m: {cmd: "x -m ${path} -a ${MODEL_ID}", name: "the ${MODEL_ID}"}}
"""
    assert model(text)["cmd"] == "x -m /m/m.gguf -a m"
    assert model(text)["name"] == "the m"


def test_the_environment_is_read_and_not_looked_into_again() -> None:
    assert expanded('apiKeys: ["${env.KEY}"]', {"KEY": "${x}"}) == {"apiKeys": ["${x}"]}


def test_one_single_reference_keeps_its_type() -> None:
    text = """
macros: {n: 4, m: "${n}", flag: true}
models: {m: {concurrencyLimit: "${m}", unlisted: "${flag}", queueMax: "${env.Q}", name: "${env.N}"}}
"""
    found = model(text, {"Q": "7", "N": "abc"})

    assert found == {"concurrencyLimit": 4, "unlisted": True, "queueMax": 7, "name": "abc"}


def test_the_port_is_left_in_commands_environments_and_proxies() -> None:
    text = 'models: {m: {cmd: "x ${PORT}", env: ["P=${PORT}"], proxy: "http://h:${PORT}"}}'

    assert model(text) == {"cmd": "x ${PORT}", "env": ["P=${PORT}"], "proxy": "http://h:${PORT}"}


def test_other_dollars_stay() -> None:
    assert model('models: {m: {cmd: "x $HOME ${a b} ${} $$"}}')["cmd"] == "x $HOME ${a b} ${} $$"


def test_comment_lines_may_name_what_does_not_exist() -> None:
    assert model("models:\n  m:\n    cmd: |\n      # ${old}\n      x\n")["cmd"] == "x\n"


def test_own_keys_are_not_looked_into() -> None:
    assert problems('x-a: "${nope}"\nmodels: {m: {x-b: "${nope}"}}') == ()


def test_a_model_called_like_a_section_is_a_model() -> None:
    tree = expanded('macros: {a: b}\nmodels: {macros: {cmd: "${a}"}, x-y: {cmd: "${a}"}}')

    assert isinstance(tree, dict)
    assert tree["models"] == {"macros": {"cmd": "b"}, "x-y": {"cmd": "b"}}


BAD = {
    'models: {m: {cmd: "${nope}"}}': (
        "f:1: models.m.cmd: unknown macro ${nope}; define it under macros",
    ),
    'macros: {latest: x}\nmodels: {m: {cmd: "${ltest} ${PROT}"}}': (
        "f:2: models.m.cmd: unknown macro ${ltest}; did you mean latest?",
        "f:2: models.m.cmd: unknown macro ${PROT}; did you mean PORT?",
    ),
    'macros: {a: "${a}"}\nmodels: {m: {cmd: "${a}"}}': (
        "f:1: macros.a: refers to itself (a → a); break the circle",
    ),
    'macros:\n  a: "${b}"\n  b: "${c}"\n  c: "${a}"\nmodels: {m: {cmd: "${b}"}}': (
        "f:2: macros.a: refers to itself (a → b → c → a); break the circle",
    ),
    'macros: {a: "${b}", b: x}\nmodels: {m: {macros: {b: "${a}"}, cmd: "${b}"}}': (
        "f:2: models.m.macros.b: refers to itself (b → a → b); break the circle",
    ),
    'macros: {a: "${nope}"}\nmodels: {m: {cmd: "${a}"}, n: {cmd: "${a}"}}': (
        "f:1: macros.a: unknown macro ${nope}; define it under macros",
    ),
    'macros: {PORT: 1, "a b": 1, c: [1], d: }\nmodels: {m: {cmd: "${c} ${d}"}}': (
        "f:1: macros.PORT: this name is qmsup's own; choose another",
        'f:1: macros."a b": a macro\'s name is 1 to 63 letters, digits, - or _; rename it',
        "f:1: macros.c: a macro is a text, a number, true or false",
        "f:1: macros.d: a macro is a text, a number, true or false",
    ),
    "macros: [a]": ("f:1: macros: must be a mapping of name: text",),
    'apiKeys: ["${env.KEY}"]': (
        "f:1: apiKeys[0]: ${env.KEY}: the environment variable KEY is not set; set it where qmsup starts",
    ),
    'apiKeys: ["${MODEL_ID}"]': ("f:1: apiKeys[0]: ${MODEL_ID} is known inside a model only",),
    'models: {m: {name: "${PORT}"}}': (
        "f:1: models.m.name: ${PORT} is known in cmd, env and proxy only",
    ),
    'models: {m: {cmd: "${PID}"}}': ("f:1: models.m.cmd: ${PID} is known in cmdStop only",),
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_wrong_macro_is_told_once_and_where_it_stands(text: str) -> None:
    assert problems(text) == BAD[text]


def test_an_environment_of_odd_bytes_is_refused() -> None:
    assert problems('apiKeys: ["${env.K}"]', {"K": "\udc80"}) == (
        "f:1: apiKeys[0]: ${env.K}: the environment variable K is not UTF-8 text; change it",
    )


def test_macros_do_not_grow_without_bound() -> None:
    lines = ["macros:", "  a0: " + "x" * 100]
    lines += [f"  a{n}: " + f"${{a{n - 1}}}" * 10 for n in range(1, 20)]

    assert problems("\n".join(lines)) == (
        "f:5: macros.a3: grows beyond 64 KiB by its macros; shorten them",
    )


def test_macros_do_not_nest_without_bound() -> None:
    lines = ["macros:", *(f"  a{n}: ${{a{n + 1}}}" for n in range(100)), "  a100: x"]

    assert problems("\n".join(lines))[0].endswith("macros are nested more than 32 deep")


def test_all_macros_together_do_not_grow_without_bound() -> None:
    text = f"macros: {{a: {'x' * 60_000}}}\nmodels:\n" + "\n".join(
        f'  m{n}: {{name: "${{a}}"}}' for n in range(300)
    )

    document = read(text)
    with pytest.raises(TooManyProblemsError):
        expand(document, {})

    assert document.problems.lines("f", {}) == (
        "f: its macros grow too large; use fewer, or shorter ones",
    )
