"""Files in llama-swap's style: they load as they are, and mean here what they mean there."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from qmsup.config import parse, parse_and_remark
from qmsup.errors import ConfigError
from qmsup.ids import HostName, ModelId
from qmsup.spec import Abilities, AllOf, AnyOf, ModelSpec, Spec
from qmsup.units import Seconds

FILES = Path(__file__).parent / "llamaswap"
ENV = {"MODELS": "/srv", "KEY": "sk-secret"}


def read(name: str) -> Spec:
    return parse((FILES / f"{name}.yaml").read_text(), name=name, env=ENV)


def remarks(text: str, env: Mapping[str, str] = ENV) -> list[str]:
    """What is remarked, each without the file's name."""
    return [told.removeprefix("f:") for told in parse_and_remark(text, name="f", env=env)[1]]


def remarks_on(name: str) -> list[str]:
    return remarks((FILES / f"{name}.yaml").read_text())


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text, name="f", env={})
    return caught.value.problems


def model(spec: Spec, name: str) -> ModelSpec:
    return spec.models[ModelId(name)]


def ids(*names: str) -> tuple[ModelId, ...]:
    return tuple(ModelId(name) for name in names)


def test_the_usual_file_of_one_machine() -> None:
    spec = read("one_box")

    coder, gemma = model(spec, "qwen3-30b"), model(spec, "gemma3-4b")
    assert coder.argv == (
        *("/opt/llama.cpp/llama-server", "--port", "${PORT}", "-fa", "on", "--no-webui"),
        *("-m", "/models/Qwen3-30B-Q4_K_M.gguf", "--ctx-size", "32768", "-np", "2"),
    )
    assert (coder.name, coder.description) == ("Qwen 3 30B", "Writes code")
    assert (coder.aliases, coder.ttl, coder.slots) == (("gpt-4o", "coder"), Seconds(0), 2)
    assert (gemma.ttl, gemma.unlisted, gemma.slots, gemma.ready_check) == (
        Seconds(300),
        True,
        3,
        "none",
    )
    assert (gemma.start_timeout, gemma.stop_grace) == (Seconds(500), Seconds(10))
    assert (spec.start_port, spec.send_loading_state) == (10001, True)


def test_macros_keep_their_types_and_a_model_s_own_lie_over_them() -> None:
    spec = read("typed_macros")

    small, large = model(spec, "small"), model(spec, "large")
    assert small.argv[3:] == ("-m", "/srv/gguf/small.gguf", "--ctx-size", "4096", "--temp", "0.7")
    assert large.argv[5:7] == ("--ctx-size", "16384")
    assert small.slots == 6
    assert large.filters.put == {"temperature": "0.7"}
    assert json.loads(small.metadata) == {
        "ctx": 4096,
        "temp": 0.7,
        "fast": True,
        "note": "small has ctx=4096",
        "port": "${PORT}",
        "list": [1, 0.7, {"deep": 4096}],
    }


def test_anchors_say_things_once() -> None:
    spec = read("anchors")

    a, b, c = (model(spec, name) for name in "abc")
    assert (a.ttl, b.ttl, c.ttl) == (Seconds(120), Seconds(5), Seconds(0))
    assert a.env == b.env == ("CUDA_VISIBLE_DEVICES=0", "GGML_CUDA_ENABLE_UNIFIED_MEMORY=1")
    assert a.filters.strip == c.filters.strip == ("temperature", "top_p")


def test_groups_at_the_top_level() -> None:
    spec = read("groups")

    chat, forever = spec.groups
    assert (chat.members, chat.swap, chat.exclusive) == (ids("llama", "qwen"), True, True)
    assert forever.members == ids("embed", "rerank")
    assert (forever.persistent, forever.swap, forever.exclusive) == (True, False, False)
    assert spec.preload == ids("embed", "rerank")


def test_groups_and_priorities_under_routing() -> None:
    spec = read("routing_groups")

    assert [(g.id, g.members, g.exclusive) for g in spec.groups] == [
        ("chat", ids("llama"), False),
        ("speech", ids("whisper"), False),
    ]
    assert spec.matrix is None
    assert spec.scheduler.priority == {ModelId("llama"): 10, ModelId("whisper"): 1}
    assert model(spec, "whisper").ready_check == "/v1/audio/transcriptions/"
    assert remarks_on("routing_groups") == [
        "13: groups.chat.members[1]: there is no model gone: it is left out",
        "15: routing.router.settings.matrix: is not in force: routing.router.use is group",
    ]


def test_a_matrix_at_the_top_level() -> None:
    matrix = read("matrix").matrix

    assert matrix is not None
    assert matrix.sets == {
        "standard": AllOf((AnyOf(ids("gemma", "qwen")), ModelId("voice"))),
        "full": ModelId("llama-70B"),
    }
    assert matrix.costs == {ModelId("voice"): 50, ModelId("llama-70B"): 30}


def test_a_matrix_under_routing() -> None:
    matrix = read("routing_matrix").matrix

    assert matrix is not None
    assert matrix.sets["spoken"] == AllOf((AnyOf(ids("gemma", "qwen")), ModelId("voice")))
    assert matrix.costs == {ModelId("voice"): 50}


def test_containers_and_fixed_ports() -> None:
    spec = read("docker")

    llama, fixed = model(spec, "docker-llama"), model(spec, "fixed")
    assert llama.argv[:4] == ("docker", "run", "--name", "docker-llama")
    assert llama.argv[-1] == "/models/with blanks.gguf"
    assert (llama.stop_argv, llama.stop_grace) == (("docker", "stop", "docker-llama"), Seconds(30))
    assert (fixed.upstream, fixed.ready_check) == ("http://127.0.0.1:8999", "/custom-endpoint")
    assert fixed.use_model_name == "openai/other"
    assert [told.split(": ")[1] for told in remarks_on("docker")] == [
        "models.fixed.timeouts",
        "models.fixed.compat.ignoreWebsockets",
    ]


def test_variants_of_one_model() -> None:
    spec = read("variants")

    oss = model(spec, "gpt-oss")
    assert oss.aliases == ("gpt-4o-mini", "gpt-oss:low", "gpt-oss:high")
    assert oss.filters.strip == ("temperature", "top_p", "top_k")
    assert oss.filters.put == {"top_p": "0.9", "stop": '["</s>"]'}
    assert oss.filters.put_by_name["gpt-oss:high"] == {
        "chat_template_kwargs": '{"reasoning_effort":"high"}'
    }
    assert spec.list_aliases
    assert spec.send_loading_state
    assert (oss.send_loading_state, model(spec, "plain").send_loading_state) == (True, False)


def test_capabilities_are_told_and_a_painter_renders() -> None:
    spec = read("capabilities")

    seer = model(spec, "seer")
    assert seer.abilities == Abilities(
        takes=("text", "image", "audio"), gives=("text",), tools=True, context=32000
    )
    assert model(spec, "ranker").abilities == Abilities(reranker=True)
    assert model(spec, "painter").renders


def test_peers() -> None:
    peers = read("peers").peers

    cloud = peers[HostName("cloud")]
    assert peers[HostName("workstation")].models == ids("model_a", "embeddings/model_c")
    assert (cloud.upstream, cloud.path, cloud.api_key) == ("127.0.0.1:9443", "/api", "sk-secret")
    assert cloud.filters.strip == ("temperature", "top_p")
    assert cloud.answer_timeout == Seconds(60)


def test_a_peer_may_be_behind_tls() -> None:
    text = """
models: {m: {cmd: llama-server}}
peers: {far: {proxy: "https://far.example/api", models: [x]}}
"""
    far = parse(text).peers[HostName("far")]

    assert (far.upstream, far.path, far.trust) == ("far.example:443", "/api", "")
    assert remarks(text) == []


def test_selectors_are_aliases_of_their_first_model_here() -> None:
    spec = read("selectors")

    assert model(spec, "big").aliases == ("best", "first", "spread")
    assert model(spec, "small").aliases == ("warmest",)
    assert spec.preload == ids("small")
    assert spec.looked_at_only == (r".*\.(js|css|png)$",)
    told = {line.split(": ")[1]: line for line in remarks_on("selectors")}
    assert "without looking at whichever is loaded" in told["selectors.warmest"]
    assert "without looking at how busy they are" in told["selectors.spread"]
    assert "nothing answers to its name" in told["selectors.nowhere"]
    assert "change nothing" in told["profiles.coding"]


def test_what_has_no_counterpart_is_said() -> None:
    keys = {line.split(": ")[1] for line in remarks_on("selectors")}

    assert keys >= {
        *("captureBuffer", "logToStdout", "ui", "performance", "store"),
    }
    text = "models: {m: {cmd: llama-server}}\nlogToStdout: none\nlogTimeFormat: kitchen"
    assert [line.split(": ")[1] for line in remarks(text)] == ["logToStdout", "logTimeFormat"]


def test_names_of_no_model_are_left_out_where_the_file_is_llama_swap_s_own() -> None:
    text = """
models: {m: {cmd: llama-server, aliases: [al, {id: other}]}}
groups: {g: {members: [m, al, gone, 5]}}
hooks: {on_startup: {preload: [al, other, gone]}}
scheduler: {priority: {al: 1, gone: 2}}
"""
    marked = f"captureBuffer: 0{text}".replace(", 5]", "]")

    spec = parse(marked)

    assert spec.groups[0].members == spec.preload == ids("m")
    assert spec.scheduler.priority == {ModelId("m"): 1}
    assert [told.split(": ")[1] for told in remarks(marked)] == [
        "groups.g.members[1]",
        "groups.g.members[2]",
        "hooks.on_startup.preload[2]",
        "scheduler.priority.gone",
    ]
    assert len(problems(text)) == 5


def test_older_files() -> None:
    spec = read("older")

    llama = model(spec, "llama")
    assert llama.argv == ("/bin/llama-server", "--port", "${PORT}", "-m", "its.gguf")
    assert llama.filters.strip == ("temperature", "top_k")
    assert model(spec, "4.10").upstream == "http://127.0.0.1:9001"
    assert (spec.groups, spec.log_level) == ((), "warning")


@pytest.mark.parametrize("path", sorted(FILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_key_is_in_a_remark(path: Path) -> None:
    assert not any("sk-" in told for told in remarks(path.read_text()))


def test_there_are_a_dozen() -> None:
    assert len(list(FILES.glob("*.yaml"))) >= 12


def test_a_command_that_is_told_no_port_is_remarked() -> None:
    assert remarks("models: {m: {cmd: some-server}}") == [
        "1: models.m.cmd: holds no ${PORT}; write it where the port belongs, or set proxy to where it listens"
    ]


def test_what_is_meant_for_a_shell_is_remarked() -> None:
    told = remarks("models: {m: {cmd: llama-server > log, cmdStop: stop || true}}")

    assert [each.partition(", ")[0] for each in told] == [
        "1: models.m.cmd: holds >",
        "1: models.m.cmdStop: holds ||",
    ]


M = "models: {m: {cmd: llama-server, aliases: [al]}}\n"

WRONG = {
    "routing: 5": ("f:2: routing: must be a mapping: keys with values, indented below it",),
    "routing: {router: {settings: 5}}": (
        "f:2: routing.router.settings: must be a mapping: keys with values, indented below it",
    ),
    "routing: {ruter: {}}": ("f:2: routing.ruter: unknown key; did you mean router?",),
    "routing: {scheduler: {zzz: 1}}": (
        "f:2: routing.scheduler.zzz: unknown key; known are use, settings",
    ),
    "routing: {router: {use: best}}": ("f:2: routing.router.use: must be one of group, matrix",),
    "routing: {scheduler: {use: lifo}}": ("f:2: routing.scheduler.use: must be one of fifo",),
    "routing: {router: {use: matrix}}": (
        (
            "f:2: routing.router.use: is matrix, and there is none; write it under"
            " routing.router.settings.matrix"
        ),
    ),
    "groups: {g: {members: [m]}}\nrouting: {router: {settings: {groups: {h: {members: [m]}}}}}": (
        "f:3: routing.router.settings.groups: stands beside groups; keep one of them",
    ),
    (
        "scheduler: {priority: {m: 1}}\n"
        "routing: {scheduler: {settings: {fifo: {priority: {m: 2}}}}}"
    ): (
        (
            "f:3: routing.scheduler.settings.fifo.priority: stands beside scheduler.priority;"
            " keep one of them"
        ),
    ),
    "routing: {router: {settings: {groups: {g: {members: [m], swap: 5}}}}}": (
        "f:2: groups.g.swap: must be true or false, not 5",
    ),
    "selectors: {m: {strategy: pin, targets: [m]}}": (
        "f:2: selectors.m: m is the name of a model already; rename one of them",
    ),
    "selectors: {al: {strategy: pin, targets: [m]}}": (
        "f:2: selectors.al: al is the name of a model already; rename one of them",
    ),
    "selectors: {s: {strategy: best, targets: [m]}}": (
        'f:2: selectors.s.strategy: must be one of warm, pin or spillover, not "best"',
    ),
    "profiles: {p: {pin: {}}}": ("f:2: profiles.p.pin: unknown key; did you mean pins?",),
    "logToStdout: all": (
        'f:2: logToStdout: must be one of proxy, upstream, both or none, not "all"',
    ),
    "ui: {activity: {session: []}}": (
        "f:2: ui.activity.session: unknown key; did you mean session_id?",
    ),
    "upstream: {ignorePaths: ['a', '(']}": (
        (
            "f:2: upstream.ignorePaths[1]: is no regular expression: missing ), unterminated subpattern"
            " at position 0; write for example \\.(js|css|png)$"
        ),
    ),
    "upstream: {ignore: []}": ("f:2: upstream.ignore: unknown key; did you mean ignorePaths?",),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_key_and_line(text: str) -> None:
    assert problems(M + text) == WRONG[text]


def test_a_number_that_json_cannot_hold_is_no_metadata() -> None:
    (told,) = problems("models: {m: {cmd: llama-server, metadata: {a: .nan}}}")

    assert told.startswith("f:1: models.m.metadata")


def test_what_is_under_routing_may_be_empty_or_the_operator_s_own() -> None:
    spec = parse(M + "routing: {x-mine: 1, router: {use: , settings: }, scheduler: }")

    assert (spec.groups, spec.matrix, spec.scheduler.priority) == ((), None, {})


def test_priorities_under_routing_lie_beside_the_rest_of_the_scheduler() -> None:
    spec = parse(
        M + "scheduler: {lineMax: 5}\nrouting: {scheduler: {settings: {fifo: {priority: {m: 3}}}}}"
    )

    assert (spec.scheduler.line_max, spec.scheduler.priority) == (5, {ModelId("m"): 3})
