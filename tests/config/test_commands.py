"""A command's words, and what they tell about the program."""

import pytest

from qmsup.config.commands import (
    fits_itself,
    gets_port,
    guess_kind,
    meant_for_a_shell,
    own_port,
    slots,
    split,
)
from qmsup.spec import Kind

SPLITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "blanks and line ends": ("a  b\n c\t--d\n", ("a", "b", "c", "--d")),
    "quotes": ("a 'b c' \"d 'e'\" f\\ g", ("a", "b c", "d 'e'", "f g")),
    "an empty argument": ("a '' b", ("a", "", "b")),
    "continued lines": ("a \\\n  b \\  \n c \\\r\n d", ("a", "b", "c", "d")),
    "a backslash at the end": ("a b \\\n", ("a", "b")),
    "comment lines": ("# one\na\n  # it's two\nb\n", ("a", "b")),
    "a comment between continued lines": ("a \\\n # no\n b", ("a", "b")),
    "a hash inside a line": ("a #b c#d", ("a", "#b", "c#d")),
    "the port stays": ("a --port ${PORT} http://x:${PORT}/y", ("a", "--port", "${PORT}", "http://x:${PORT}/y")),
    "no shell runs": ("a $HOME | b && c > d", ("a", "$HOME", "|", "b", "&&", "c", ">", "d")),
    "nothing": (" \n# only words\n", ()),
}  # fmt: skip


@pytest.mark.parametrize("case", SPLITS)
def test_a_command_is_split_as_a_shell_would(case: str) -> None:
    cmd, argv = SPLITS[case]

    assert split(cmd) == argv


@pytest.mark.parametrize("cmd", ["a 'b", 'a "b'])
def test_an_open_quote_is_an_error(cmd: str) -> None:
    with pytest.raises(ValueError, match="quotation"):
        split(cmd)


KINDS = {
    "llama-server": Kind.LLAMA_SERVER,
    "/opt/x/llama-server-vulkan": Kind.LLAMA_SERVER,
    "./sd-server": Kind.SD_SERVER,
    "/llama-server/run": Kind.GENERIC,
    "docker": Kind.GENERIC,
}


@pytest.mark.parametrize("program", KINDS)
def test_the_kind_is_guessed_from_the_program(program: str) -> None:
    assert guess_kind([program, "llama-server"]) is KINDS[program]


def test_no_command_is_of_no_known_kind() -> None:
    assert guess_kind([]) is Kind.GENERIC


SLOTS: dict[str, int | None] = {
    "x -np 4": 4,
    "x --parallel 3": 3,
    "x --parallel=7": 7,
    "x -np=2": 2,
    "x -np 2 --parallel 5": 5,
    "x -np -1": None,
    "x -np": None,
    "x -np many": None,
    "x -np 0": None,
    "x -npl 4": None,
}


@pytest.mark.parametrize("cmd", SLOTS)
def test_slots_are_what_the_command_says(cmd: str) -> None:
    assert slots(cmd.split(), [], Kind.LLAMA_SERVER) == SLOTS[cmd]


def test_slots_may_be_said_in_the_environment_of_a_llama_server() -> None:
    env = ["LLAMA_ARG_N_PARALLEL=6"]

    assert slots(["x"], env, Kind.LLAMA_SERVER) == 6
    assert slots(["x", "-np", "2"], env, Kind.LLAMA_SERVER) == 2
    assert slots(["x"], env, Kind.GENERIC) is None


def test_the_port_of_a_known_server_is_read_from_its_flag() -> None:
    assert own_port(["llama-server", "--port", "9000"]) == "9000"
    assert own_port(["sd-server", "--listen-port=9001"]) == "9001"
    assert own_port(["llama-server"]) is None
    assert own_port(["python", "--port", "9000"]) is None


def test_a_command_gets_its_port_by_word_by_environment_or_because_it_is_known() -> None:
    assert gets_port(["x", "-p${PORT}"], [])
    assert gets_port(["x"], ["PORT=${PORT}"])
    assert gets_port(["llama-server"], [])
    assert not gets_port(["x"], [])
    assert not gets_port(["llama-server", "--port", "9000"], [])


FITS = {
    "llama-server -m x": True,
    "llama-server -fit off": False,
    "llama-server --fit off": False,
    "llama-server --fit=OFF": False,
    "llama-server --fit 0": False,
    "llama-server --fit off --fit on": True,
    "llama-server --fit": True,
    "llama-server --fit-ctx 0": True,
}


@pytest.mark.parametrize("cmd", FITS)
def test_a_llama_server_fits_itself_to_free_memory_unless_told_not_to(cmd: str) -> None:
    assert fits_itself(cmd.split(), [], Kind.LLAMA_SERVER) is FITS[cmd]


def test_that_may_be_said_in_its_environment() -> None:
    env = ["LLAMA_ARG_FIT=on", "LLAMA_ARG_FIT=off"]

    assert not fits_itself(["x"], env, Kind.LLAMA_SERVER)
    assert fits_itself(["x", "-fit", "on"], env, Kind.LLAMA_SERVER)
    assert fits_itself(["x"], env[:1], Kind.LLAMA_SERVER)


def test_other_programs_do_not_but_for_an_sd_server_that_is_told_to() -> None:
    assert fits_itself(["sd-server", "--auto-fit"], [], Kind.SD_SERVER)
    assert not fits_itself(["sd-server"], [], Kind.SD_SERVER)
    assert not fits_itself(["docker", "--fit", "on"], [], Kind.GENERIC)


@pytest.mark.parametrize(
    ("cmd", "sign"),
    [
        ("a --port 1 | tee log", "|"),
        ("a && b", "&&"),
        ("a -m x &", "&"),
        ("a ; b", ";"),
        ("a > log 2>&1", ">"),
        ("a -m x 2>&1", "2>&1"),
        ("a >>/var/log/a.log", ">>"),
        ("a < b", "<"),
        ("a -m ~/m.gguf", "~"),
        ("$HOME/bin/a", "$HOME"),
        ("docker run -v $PWD/x:/x a", "$PWD"),
        ("a -m $HOME", "$HOME"),
        ("sh -c 'a > log' && b", None),
        ("/bin/bash -c 'a' ~/x", None),
        ("ssh box a -m ~/m.gguf", None),
        ("a -r '<|im_end|>' -p 'b & c' --x '> y' --glob *~ --tag ~x --cost $5 --template '$USERS'", None),
        ("a -m /m.gguf --api-key A=b", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_only_a_shell_understands_is_found(cmd: str, sign: str | None) -> None:
    told = meant_for_a_shell(split(cmd))

    assert (told is None) if sign is None else (told or "").startswith(f"holds {sign}, which ")


def test_a_variable_before_the_program_is_found_and_its_value_not_told() -> None:
    told = meant_for_a_shell(split("API_KEY=sk-abc llama-server"))

    assert told == "starts with API_KEY=, which is taken for the program; write it in env"
