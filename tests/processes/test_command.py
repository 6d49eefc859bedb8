from dataclasses import replace

import pytest

from qmsup.errors import ChildError
from qmsup.ids import ListenerName, ModelId
from qmsup.processes.command import fixed_port, has_fixed_port, launch, named_ports
from qmsup.spec import Kind, ListenerSpec, ModelSpec, Spec

LLAMA = ModelSpec(id=ModelId("m"), argv=("/opt/llama-server", "-m", "a.gguf"), slots=4)
ENV = {"PATH": "/bin", "HOME": "/root"}


def argv_of(spec: ModelSpec) -> tuple[str, ...]:
    return launch(spec, 21000, nonce="n", base=ENV).argv


def test_a_silent_llama_server_is_told_where_to_listen_and_with_how_many_threads() -> None:
    added = ("--host", "127.0.0.1", "--port", "21000", "--threads-http", "16")

    assert argv_of(LLAMA) == LLAMA.argv + added
    assert argv_of(replace(LLAMA, slots=32))[-1] == "40"


def test_what_the_command_says_is_left_alone() -> None:
    said = ("llama-server", "--host", "0.0.0.0", "--port", "${PORT}", "--threads-http=3")

    assert argv_of(replace(LLAMA, argv=said)) == (*said[:4], "21000", said[5])


def test_what_its_environment_says_is_left_alone_too() -> None:
    spec = replace(LLAMA, env=("LLAMA_ARG_HOST=::1", "LLAMA_ARG_THREADS_HTTP=64"))

    assert argv_of(spec) == (*LLAMA.argv, "--port", "21000")


@pytest.mark.parametrize(
    ("kind", "argv"),
    [
        (Kind.LLAMA_SERVER, ("/opt/start-my-model", "8080")),
        (Kind.LLAMA_SERVER, ("docker", "run", "llama-server")),
        (Kind.SD_SERVER, ("nice", "sd-server")),
        (Kind.GENERIC, ("python", "-m", "http.server")),
    ],
)
def test_nothing_is_added_where_nobody_knows_what_it_would_mean(
    kind: Kind, argv: tuple[str, ...]
) -> None:
    assert argv_of(replace(LLAMA, kind=kind, argv=argv)) == argv


def test_a_silent_sd_server_is_told_where_to_listen() -> None:
    spec = replace(LLAMA, kind=Kind.SD_SERVER, argv=("sd-server", "-m", "a"))

    assert argv_of(spec)[3:] == ("--listen-ip", "127.0.0.1", "--listen-port", "21000")
    said = ("sd-server", "--listen-ip", "::1", "--listen-port", "1")
    assert argv_of(replace(spec, argv=said)) == said


def test_our_own_environment_does_not_change_the_child() -> None:
    base = {
        **ENV,
        "LLAMA_ARG_CTX_SIZE": "1",
        "LLAMA_API_KEY": "secret",
        "LLAMA_LOG_FILE": "/tmp/all-in-one.log",
        "LLAMA_SERVER_ROUTER_PORT": "1",
        "AIP_MODE": "PREDICTION",
        "NOTIFY_SOCKET": "/run/notify",
        "LISTEN_FDS": "1",
        "QMSUP_CHILD": "of another",
    }

    env = launch(LLAMA, 21000, nonce="n", base=base).env

    assert env == {**ENV, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "QMSUP_CHILD": "n"}


def test_the_operators_environment_is_laid_over() -> None:
    spec = replace(LLAMA, env=("LLAMA_ARG_CTX_SIZE=9", "HOME=/srv", "URL=x=${PORT}"))

    env = launch(spec, 21000, nonce="n", base=ENV).env

    assert (env["LLAMA_ARG_CTX_SIZE"], env["HOME"], env["URL"]) == ("9", "/srv", "x=21000")


def test_the_upstream_is_where_the_child_will_answer() -> None:
    assert launch(LLAMA, 21000, nonce="n", base=ENV).upstream == "127.0.0.1:21000"
    six = replace(LLAMA, upstream="http://[::1]:${PORT}")
    assert launch(six, 21000, nonce="n", base=ENV).upstream == "[::1]:21000"


@pytest.mark.parametrize("upstream", ["nonsense", "http://127.0.0.1", "http://h:99999999"])
def test_an_upstream_that_is_no_address_is_told_with_its_key(upstream: str) -> None:
    spec = replace(LLAMA, upstream=upstream)

    with pytest.raises(ChildError, match=r"models\.m\.proxy"):
        launch(spec, 21000, nonce="n", base=ENV)
    assert has_fixed_port(spec)


def test_an_empty_command_is_told_with_its_key() -> None:
    with pytest.raises(ChildError, match=r"models\.m\.cmd"):
        launch(replace(LLAMA, argv=()), 21000, nonce="n", base=ENV)


@pytest.mark.parametrize(
    ("upstream", "argv", "port"),
    [
        ("http://127.0.0.1:${PORT}", ("llama-server",), None),
        ("http://127.0.0.1:${PORT}", ("llama-server", "--port", "${PORT}"), None),
        ("http://127.0.0.1:${PORT}", ("llama-server", "--port", "9000"), 9000),
        ("http://127.0.0.1:9001", ("llama-server",), 9001),
    ],
)
def test_a_port_the_operator_chose_is_kept(
    upstream: str, argv: tuple[str, ...], port: int | None
) -> None:
    spec = replace(LLAMA, upstream=upstream, argv=argv)

    assert fixed_port(spec) == port
    assert has_fixed_port(spec) == (port is not None)


@pytest.mark.parametrize(
    ("argv", "upstream", "proves"),
    [
        (("llama-server",), "http://localhost:${PORT}", True),
        (("/usr/bin/docker", "run"), "http://127.0.0.1:${PORT}", False),
        (("llama-server",), "http://10.0.0.7:${PORT}", False),
    ],
)
def test_a_port_is_proved_where_the_child_itself_has_it(
    argv: tuple[str, ...], upstream: str, proves: bool
) -> None:
    spec = replace(LLAMA, argv=argv, upstream=upstream)

    assert launch(spec, 21000, nonce="n", base=ENV).proves_port == proves


def test_a_key_whose_model_has_an_odd_name_is_told_as_it_is_found_in_the_file() -> None:
    odd = ModelSpec(id=ModelId("my model.v1"), argv=())

    with pytest.raises(ChildError, match=r'^models\."my model\.v1"\.cmd is empty'):
        launch(odd, 5800, nonce="n", base={})


def test_the_ports_that_a_configuration_names_are_known() -> None:
    models = [
        LLAMA,
        replace(LLAMA, id=ModelId("own"), argv=("llama-server", "--port", "9001", "-c", "1")),
        replace(LLAMA, id=ModelId("proxied"), upstream="http://127.0.0.1:9002"),
        replace(LLAMA, id=ModelId("nowhere"), upstream="nowhere"),
    ]
    main = ListenerSpec(name=ListenerName("main"), host="127.0.0.1", port=9003)
    spec = Spec(models={model.id: model for model in models}, listeners={main.name: main})

    assert named_ports(spec) == {9001, 9002, 9003}
