import pytest

from qmsup.control.exits import Exit, exit_of, lines_of
from qmsup.errors import (
    AskTimedOutError,
    ConfigError,
    PeerError,
    QmsupError,
    RefusedError,
    SchedulerUnavailableError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefusedError("queue_full", "no"), Exit.REFUSED),
        (PeerError("what?"), Exit.REFUSED),
        (ConfigError(("a: b",)), Exit.USAGE),
        (PermissionError(13, "Permission denied", "/x"), Exit.USAGE),
        (SchedulerUnavailableError("gone"), Exit.UNREACHABLE),
        (AskTimedOutError("late"), Exit.TIMED_OUT),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: QmsupError | OSError, code: Exit) -> None:
    assert exit_of(error) == code


def test_an_error_is_one_line() -> None:
    assert lines_of(PeerError("one\n  two")) == ("one two",)


def test_each_problem_of_a_configuration_is_a_line() -> None:
    assert lines_of(ConfigError(("a: b", "c: d"))) == ("a: b", "c: d")
    assert lines_of(RefusedError("config_invalid", "a: b\nc: d")) == ("a: b", "c: d")
    assert lines_of(RefusedError("bad_request", "a:\nb")) == ("a: b",)


def test_the_last_words_of_a_child_are_lines() -> None:
    assert lines_of(RefusedError("model_load_failed", "it ended\nbad file")) == (
        "it ended",
        "bad file",
    )


def test_an_unknown_model_says_where_the_known_ones_are_unless_one_is_named() -> None:
    assert lines_of(RefusedError("model_not_found", "there is no model 'x'")) == (
        "there is no model 'x'; `qmsup ps` shows those there are",
    )
    near = "there is no model 'chatt'; did you mean 'chat'?"
    assert lines_of(RefusedError("model_not_found", near)) == (near,)
    peers = "there is no model 'big' on this box: it is the peer far's; ask there"
    assert lines_of(RefusedError("model_not_found", peers)) == (peers,)


def test_an_error_of_the_system_names_its_file() -> None:
    assert lines_of(FileNotFoundError(2, "No such file", "/x")) == ("/x: No such file",)
    (denied,) = lines_of(PermissionError(13, "Permission denied", "/x"))
    assert denied.startswith("/x: Permission denied for user ")
    assert denied.endswith("; run as the user whose it is")
    assert lines_of(OSError("odd")) == ("odd",)
