"""Whole configurations: what they come to, and every way they are refused."""

from collections.abc import Mapping

import pytest

from qmsup.config import parse
from qmsup.errors import ConfigError
from qmsup.ids import ListenerName, ModelId
from qmsup.spec import (
    Abilities,
    GroupSpec,
    HoldOn,
    KeySpec,
    Kind,
    ListenerSpec,
    ModelSpec,
    OnExit,
    Pool,
    SchedulerSpec,
    Spec,
)
from qmsup.units import MiB, Seconds


def problems(text: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(text, name="f", env=env or {})
    return caught.value.problems


def test_the_smallest_file_is_all_defaults() -> None:
    spec = parse("models: {chat: {cmd: llama-server -m chat.gguf}}")

    chat = ModelSpec(
        id=ModelId("chat"),
        argv=("llama-server", "-m", "chat.gguf"),
        slots_from_child=True,
        fits_itself=True,
    )
    main = ListenerSpec(name=ListenerName("main"))
    assert spec == Spec(models={chat.id: chat}, listeners={main.name: main})


FULL = """
listeners:
  main: {bind: "[::1]:80", workers: 3}
  agents: {bind: "127.0.0.1:8081", groups: [coding], apiKeys: [k2, k2]}
  open: {bind: "127.0.0.1:8082", apiKeys: []}
vramBudgetGB: 23.5
ramBudgetGB: 64
oomGuardReserveGB: 0.5
oomGuardGraceMs: 1500
oomGuardEvict: off
apiKeys: ["k1"]
scheduler: {lineMax: 10, offerTimeoutMs: 100, listenerGraceMs: 0, priority: {chat: 5, paint: -1},
  holdMs: 250, holdOn: always, patienceMs: 0, settleMs: 500, lendMs: 0}
onExit: stop
sendLoadingState: yes
loadingRemarks: off
healthCheckTimeout: 60
unloadTimeout: 0
globalTTL: 600
startPort: 6000
maxBodyMB: 0.5
schedulerGraceMs: 1
shutdownDrainMs: 2
logLevel: warn
logFormat: json
accessLog: false
macros: {llama: "llama-server --port ${PORT}"}
models:
  chat:
    cmd: ${llama} -np 3
    aliases: [gpt-4o-mini, 4.10, chat]
    name: Chat
    description: talks
    unlisted: true
    env: [A=b, C=]
    checkEndpoint: none
    queueMax: 0
    estVramGB: 5.2
    estRamGB: 0.5
    unloadTimeout: 3.5
    ttl: 0
    healthCheckTimeout: 1
    useModelName: other
  paint: {cmd: sd-server --listen-port 9000, concurrencyLimit: 2}
  "a/b:c d":
    cmd: python serve.py
    proxy: http://localhost:9001
    kind: llama-server
    checkEndpoint: tcp
    capabilities: {out: [text, image]}
groups:
  coding: {members: [chat], swap: false, exclusive: false, persistent: true}
  rest: {members: [paint], pool: ram}
"""


def test_every_key_reaches_the_spec() -> None:
    assert parse(FULL) == Spec(
        models={
            ModelId("chat"): ModelSpec(
                id=ModelId("chat"),
                argv=("llama-server", "--port", "${PORT}", "-np", "3"),
                name="Chat",
                description="talks",
                aliases=("gpt-4o-mini", "4.10"),
                unlisted=True,
                env=("A=b", "C="),
                ready_check="none",
                start_timeout=Seconds(1.0),
                stop_grace=Seconds(3.5),
                slots=3,
                queue_max=0,
                est_vram=MiB(5325),
                est_ram=MiB(512),
                fits_itself=True,
                use_model_name="other",
            ),
            ModelId("paint"): ModelSpec(
                id=ModelId("paint"),
                argv=("sd-server", "--listen-port", "9000"),
                kind=Kind.SD_SERVER,
                upstream="http://127.0.0.1:9000",
                ready_check="/v1/models",
                start_timeout=Seconds(60.0),
                stop_grace=Seconds(0.0),
                ttl=Seconds(600.0),
                slots=2,
                renders=True,
            ),
            ModelId("a/b:c d"): ModelSpec(
                id=ModelId("a/b:c d"),
                argv=("python", "serve.py"),
                upstream="http://localhost:9001",
                ready_check="tcp",
                abilities=Abilities(gives=("text", "image")),
                start_timeout=Seconds(60.0),
                stop_grace=Seconds(0.0),
                ttl=Seconds(600.0),
                slots_from_child=True,
                renders=True,
                fits_itself=True,
            ),
        },
        groups=(
            GroupSpec(
                id="coding",
                members=(ModelId("chat"),),
                swap=False,
                exclusive=False,
                persistent=True,
            ),
            GroupSpec(id="rest", members=(ModelId("paint"),), pool=Pool.RAM),
        ),
        listeners={
            ListenerName("main"): ListenerSpec(
                name=ListenerName("main"),
                host="::1",
                port=80,
                workers=3,
                api_keys=(KeySpec(key="k1"),),
            ),
            ListenerName("agents"): ListenerSpec(
                name=ListenerName("agents"),
                port=8081,
                groups=("coding",),
                api_keys=(KeySpec(key="k2"),),
            ),
            ListenerName("open"): ListenerSpec(name=ListenerName("open"), port=8082),
        },
        scheduler=SchedulerSpec(
            line_max=10,
            offer_timeout=Seconds(0.1),
            listener_grace=Seconds(0.0),
            priority={ModelId("chat"): 5, ModelId("paint"): -1},
            hold=Seconds(0.25),
            hold_on=HoldOn.ALWAYS,
            patience=Seconds(0.0),
            settle=Seconds(0.5),
            lend=Seconds(0.0),
        ),
        vram_budget=MiB(24064),
        oom_guard_reserve=MiB(512),
        oom_guard_grace=Seconds(1.5),
        oom_guard_evict=False,
        ram_budget=MiB(65536),
        start_port=6000,
        on_exit=OnExit.STOP,
        send_loading_state=True,
        loading_remarks=False,
        max_body=512 * 1024,
        scheduler_grace=Seconds(0.001),
        shutdown_drain=Seconds(0.002),
        log_level="warning",
        log_format="json",
        access_log=False,
    )


@pytest.mark.parametrize(
    ("cmd", "slots"),
    [("llama-server", 4), ("sd-server", 1), ("x ${PORT}", 10)],
)
def test_slots_are_by_kind_when_nobody_says(cmd: str, slots: int) -> None:
    model = parse(f"models: {{m: {{cmd: '{cmd}'}}}}").models[ModelId("m")]

    assert (model.slots, model.slots_from_child) == (slots, True)


def test_the_limit_counts_more_than_the_command() -> None:
    model = parse("models: {m: {cmd: llama-server -np 2, concurrencyLimit: 3}}").models[
        ModelId("m")
    ]

    assert (model.slots, model.slots_from_child) == (3, False)


def test_a_budget_of_nothing_is_no_budget() -> None:
    spec = parse("vramBudgetGB: 0\nramBudgetGB: 0\nmodels: {m: {cmd: llama-server}}")

    assert (spec.vram_budget, spec.ram_budget) == (None, None)


def test_sections_with_nothing_below_them_are_empty() -> None:
    text = """
listeners:
groups:
macros:
apiKeys:
scheduler:
models: {m: {cmd: llama-server, env: , aliases: , macros: , capabilities: }}
"""
    assert parse(text) == parse("models: {m: {cmd: llama-server}}")


def test_keys_of_ones_own_are_ignored() -> None:
    text = """
x-a: &a {cmd: llama-server}
models: {m: {<<: *a, x-b: 1, capabilities: {x-f: 1, out: }}, x-y: {cmd: llama-server}}
groups: {g: {members: [x-y], x-c: 1}}
listeners: {l: {x-d: 1}}
scheduler: {x-e: 1}
"""
    assert list(parse(text).models) == ["m", "x-y"]


def test_a_gate_to_other_machines_needs_no_model_of_its_own() -> None:
    spec = parse('peers: {garage: {proxy: "http://10.0.0.2:8080", models: [chat]}}')
    assert not spec.models
    assert list(spec.peers) == ["garage"]


OK_MODELS = "models: {m: {cmd: llama-server}, n: {cmd: llama-server, aliases: [al]}}\n"

WORDS = "keys with values, indented below it"
BAD: dict[str, tuple[str, ...]] = {
    # the file
    "": (("f: is empty; write at least one model, for example `models: {chat: {cmd: "
         '"llama-server -m /models/chat.gguf --port ${PORT}"}}`'),),
    "[a]": (("f: is no mapping of keys; write at least one model, for example `models: {chat: {cmd: "
            '"llama-server -m /models/chat.gguf --port ${PORT}"}}`'),),
    "models:": (("f:1: models: no model is configured; write for example `models: {chat: {cmd: "
                '"llama-server -m /models/chat.gguf --port ${PORT}"}}`'),),
    "a: [": (("f:1:5: not valid YAML: expected the node content, but found '<stream end>' "
             "(while parsing a flow node)"),),
    # keys
    "models: {m: {cmd: llama-server, estVramGb: 1}}": (
        "f:1: models.m.estVramGb: unknown key; did you mean estVramGB?",),
    OK_MODELS + "estVramGB: 1": ("f:2: estVramGB: unknown key here; it belongs under models.NAME",),
    OK_MODELS + "groups: {g: {startPort: 1}}": (
        "f:2: groups.g.startPort: unknown key here; it belongs at the top level",),
    OK_MODELS + "groups: {g: {zzz: 1}}": (
        "f:2: groups.g.zzz: unknown key; known are members, swap, exclusive, persistent, pool, and any x-…",),
    OK_MODELS + "groups: {g: {pool: gpu}}": (
        'f:2: groups.g.pool: must be one of vram or ram, not "gpu"',),
    OK_MODELS + "ramBudgetGB: 64GB": (
        ('f:2: ramBudgetGB: must be a number, in GB, not "64GB"; write the number alone, without '
        "quotes or unit"),),
    OK_MODELS + "startPort: 1\nstartPort: 2": ("f:3: startPort: given twice, first on line 2; keep one",),
    # values
    "models: {m: {cmd: llama-server, estVramGB: 24GB}}": (
        ('f:1: models.m.estVramGB: must be a number, in GB, not "24GB"; write the number alone, without '
        "quotes or unit"),),
    "models: {m: {cmd: llama-server, estVramGB: -1}}": (
        "f:1: models.m.estVramGB: must be at least 0, in GB, not -1",),
    "models: {m: {cmd: llama-server, estVramGB: .nan}}": (
        "f:1: models.m.estVramGB: must be a number, in GB, not .nan",),
    "models: {m: {cmd: llama-server, estVramGB: 1e9}}": (
        "f:1: models.m.estVramGB: must be at most 1000000, in GB, not 1e9",),
    "models: {m: {cmd: llama-server, concurrencyLimit: yes}}": (
        'f:1: models.m.concurrencyLimit: must be a whole number, not "yes"',),
    "models: {m: {cmd: llama-server, concurrencyLimit: 1.5}}": (
        "f:1: models.m.concurrencyLimit: must be a whole number, not 1.5",),
    "models: {m: {cmd: llama-server, unlisted: 1}}": ("f:1: models.m.unlisted: must be true or false, not 1",),
    "models: {m: {cmd: llama-server, name: true}}": (
        "f:1: models.m.name: must be text, not true; put it in quotes",),
    "models: {m: {cmd: llama-server, aliases: [{name: a}]}}": ("f:1: models.m.aliases[0]: must be text",),
    "models: {m: {cmd: llama-server, kind: vllm}}": (
        'f:1: models.m.kind: must be one of llama-server, sd-server or generic, not "vllm"',),
    "models: {m: {cmd: llama-server, aliases: a}}": (
        'f:1: models.m.aliases: must be a list ([a, b], or lines that start with -), not "a"',),
    "models: {m: llama-server}": (f'f:1: models.m: must be a mapping: {WORDS}, not "llama-server"',),
    "models: [m]": (f"f:1: models: must be a mapping: {WORDS}",),
    OK_MODELS + "startPort:": ("f:2: startPort: has no value; write one, or remove the line",),
    OK_MODELS + "startPort: 0": ("f:2: startPort: must be at least 1, not 0",),
    OK_MODELS + "maxBodyMB: 0": ("f:2: maxBodyMB: must be more than 0, in MB, not 0",),
    OK_MODELS + "onExit: leave": ('f:2: onExit: must be one of keep or stop, not "leave"',),
    OK_MODELS + "healthCheckTimeout: 2m": (
        ('f:2: healthCheckTimeout: must be a number, in seconds, not "2m"; write the number alone, '
        "without quotes or unit"),),
    OK_MODELS + "scheduler: 5": (f"f:2: scheduler: must be a mapping: {WORDS}, not 5",),
    "models: {m: {cmd: llama-server, capabilities: {out: [text, film]}}}": (
        'f:1: models.m.capabilities.out[1]: must be one of text, image, video, audio or embedding, not "film"',),
    "models: {m: {cmd: llama-server, capabilities: {outs: [text]}}}": (
        "f:1: models.m.capabilities.outs: unknown key; did you mean out?",),
    OK_MODELS + "scheduler: {holdMs: -1, holdOn: never, patienceMs: soon}": (
        "f:2: scheduler.holdMs: must be at least 0, in milliseconds, not -1",
        'f:2: scheduler.holdOn: must be one of tool_calls or always, not "never"',
        'f:2: scheduler.patienceMs: must be a number, in milliseconds, not "soon"'),
    "models: {m: {cmd: llama-server, ttl: -2}}": (
        "f:1: models.m.ttl: must be at least -1, not -2",),
    OK_MODELS + "globalTTL: -1": (
        "f:2: globalTTL: must be at least 0, not -1",),
    OK_MODELS + "scheduler: {lineMax: 0, priority: {m: high}}": (
        "f:2: scheduler.lineMax: must be at least 1, not 0",
        'f:2: scheduler.priority.m: must be a whole number, not "high"'),
    # models
    "models:\n  m:\n    name: x\n": (
        ("f:2: models.m.cmd: is missing; write the command, for example llama-server -m "
        "/models/chat.gguf --port ${PORT}"),),
    "models:\n  m:\n    cmd: |\n      # no\n": (
        ("f:3: models.m.cmd: holds comments only; write the command, for example llama-server -m "
        "/models/chat.gguf --port ${PORT}"),),
    "models: {m: {cmd: \"llama-server 'x\"}}": (
        "f:1: models.m.cmd: cannot be split: no closing quotation; close it, or escape it",),
    "models: {m: {cmd: \"'' x ${PORT}\"}}": (
        "f:1: models.m.cmd: starts with an empty word; write the program first",),
    "models: {m: {cmd: x, proxy: 'http://h:${PORT}'}}": (
        "f:1: models.m.proxy: uses ${PORT}, but cmd does not; write it in both or in none",),
    "models: {m: {cmd: x, proxy: 'https://h:1'}}": (
        ("f:1: models.m.proxy: is not a plain http address; write http://HOST:PORT, for example "
        "http://127.0.0.1:${PORT}"),),
    "models: {m: {cmd: x, proxy: 'http://127.0.0.1:8080'}}": (
        "f:1: models.m.proxy: is where listener main listens; write where the command listens",),
    "models: {m: {cmd: llama-server, checkEndpoint: healthy}}": (
        ("f:1: models.m.checkEndpoint: must be a path like /health, or none, tcp, status:CODE PATH or log:REGEX,"
        ' not "healthy"'),),
    "models: {m: {cmd: llama-server, checkEndpoint: 'status:401'}}": (
        ("f:1: models.m.checkEndpoint: names no status and path; write for example status:401 /v1/models,"
        ' not "status:401"'),),
    "models: {m: {cmd: llama-server, checkEndpoint: 'status:100 /'}}": (
        ("f:1: models.m.checkEndpoint: names no status and path; write for example status:401 /v1/models,"
        ' not "status:100 /"'),),
    "models: {m: {cmd: llama-server, checkEndpoint: 'log:('}}": (
        (
            "f:1: models.m.checkEndpoint: log: is no regular expression: missing ), unterminated subpattern"
            " at position 0; write for example log:listening on"
        ),),
    "models: {m: {cmd: llama-server, checkEndpoint: 'log:(a+)+b'}}": (
        (
            "f:1: models.m.checkEndpoint: log: repeats what repeats itself, which can take for ever: leave out"
            " one of the two, as in a+ for (a+)+; write for example log:listening on"
        ),),
    "models: {m: {cmd: llama-server, checkEndpoint: 'log:'}}": (
        "f:1: models.m.checkEndpoint: log: lacks what to look for; write for example log:listening on",),
    "models: {m: {cmd: llama-server, cmdStop: \"docker stop 'm\"}}": (
        "f:1: models.m.cmdStop: cannot be split: no closing quotation; close it, or escape it",),
    "models: {m: {cmd: llama-server}}\nhooks: {on_startup: {preload: [m, n]}}": (
        'f:2: hooks.on_startup.preload[1]: there is no model n; add it under models, or remove it here',),
    "models: {m: {cmd: llama-server, env: [A=b, secret, =x]}}": (
        "f:1: models.m.env[1]: must be KEY=value", "f:1: models.m.env[2]: must be KEY=value"),
    'models: {"a\\nb": {cmd: llama-server}}': (
        'f:1: models."a\\nb": a name has no line breaks, control characters or blanks at its ends',),
    "models: {" + "é" * 80 + ": {cmd: llama-server}}": (
        f"f:1: models.\"{'é' * 59}…\": the name is too long; at most 240 plain characters",),
    # names
    "models: {m: {cmd: llama-server, aliases: [n]}, n: {cmd: llama-server}}": (
        "f:1: models.m.aliases[0]: n is the name of a model; choose another alias",),
    "models: {m: {cmd: llama-server, aliases: [a, '']}, n: {cmd: llama-server, aliases: [a]}}": (
        "f:1: models.m.aliases[1]: is empty; write a name or remove the entry",
        "f:1: models.n.aliases[0]: a is an alias of model m already; keep one"),
    OK_MODELS + "groups: {g: {members: [m, mm, al]}}": (
        "f:2: groups.g.members[1]: there is no model mm; did you mean m?",
        "f:2: groups.g.members[2]: al is an alias; write the model's name, n"),
    OK_MODELS + "groups: {g: {members: [m, m]}, h: {members: [m]}}": (
        "f:2: groups.g.members[1]: model m is in this group already; a model is in one group",
        "f:2: groups.h.members[0]: model m is in group g already; a model is in one group"),
    OK_MODELS + "groups: {(default): {members: [m]}}": (
        'f:2: groups."(default)": this name stands for the models in no group; choose another',),
    OK_MODELS + "scheduler: {priority: {zzz: 1}}": (
        "f:2: scheduler.priority.zzz: there is no model zzz; add it under models, or remove it here",),
    # listeners
    OK_MODELS + "listeners: {l: {bind: 8080}}": (
        'f:2: listeners.l.bind: has no port; write HOST:PORT, for example "127.0.0.1:8080"',),
    OK_MODELS + "listeners: {l: {bind: 'h:0'}}": (
        "f:2: listeners.l.bind: port 0 would be another one at each start; write a number from 1 on",),
    OK_MODELS + "listeners: {l: {bind: 'h:1'}, k: {bind: 'h:1'}}": (
        "f:2: listeners.k.bind: listener l binds that port already; give each listener its own",),
    OK_MODELS + "listeners: {a/b: {workers: 0}}": (
        "f:2: listeners.a/b: a listener's name is letters, digits, - _ or . (at most 64); rename it",),
    OK_MODELS + "listeners: {l: {groups: [g], workers: 0}}": (
        "f:2: listeners.l.groups[0]: there is no group g; add it under groups, or remove it here",
        "f:2: listeners.l.workers: must be at least 1, not 0"),
    OK_MODELS + "listeners: {l: {groups: []}}": (
        "f:2: listeners.l.groups: names no group; remove the line to show every model",),
    OK_MODELS + "listeners: {l: {groups: [g]}}\ngroups: 5": (
        f"f:3: groups: must be a mapping: {WORDS}, not 5",),
    OK_MODELS + "listeners: {l: {bind: '${x}'}}": (
        "f:2: listeners.l.bind: unknown macro ${x}; define it under macros",),
    OK_MODELS + "apiKeys: ['', 'sk 1']": (
        "f:2: apiKeys[0]: a key is empty; write one or remove the entry",
        "f:2: apiKeys[1]: a key is plain characters without blanks"),
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_bad_file_is_refused_with_key_line_and_what_to_do(text: str) -> None:
    assert sorted(problems(text)) == sorted(BAD[text])


def test_all_problems_are_told_in_the_order_of_the_file() -> None:
    text = """
vramBudgetGB: lots
models:
  a: {cmd: llama-server, estVramGB: x}
  b: 5
  c: {cmd: "${nope}", zzz: 1}
groups:
  g: {members: [a, b, c, d]}
listeners: {l: {bind: x}}
"""
    assert [line.split(":")[1] for line in problems(text)] == ["2", "4", "5", "6", "6", "8", "9"]


def test_preloaded_models_are_named_once_and_by_any_name() -> None:
    spec = parse(
        "models: {a: {cmd: llama-server, aliases: [one]}, b: {cmd: llama-server}}\n"
        "hooks: {on_startup: {preload: [b, one, a]}}"
    )

    assert spec.preload == ("b", "a")


def test_a_stop_command_is_split_and_keeps_what_only_a_running_child_has() -> None:
    spec = parse(
        "models: {m: {cmd: 'docker run -p ${PORT}:8080 x', cmdStop: 'docker stop ${MODEL_ID} ${PID}'}}"
    )

    assert spec.models[ModelId("m")].stop_argv == ("docker", "stop", "m", "${PID}")


def test_a_line_of_the_log_may_tell_that_a_model_is_ready() -> None:
    spec = parse("models: {m: {cmd: 'serve ${PORT}', checkEndpoint: 'log:^ready \\d+'}}")

    assert spec.models[ModelId("m")].ready_check == "log:^ready \\d+"


def test_another_status_than_200_may_tell_it() -> None:
    spec = parse("models: {m: {cmd: 'serve ${PORT}', checkEndpoint: 'status:401 /v1/models'}}")

    assert spec.models[ModelId("m")].ready_check == "status:401 /v1/models"
