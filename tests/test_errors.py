import pytest

from qmsup.errors import Code, ConfigError, Refusal, RequestError, key_text, status_of


@pytest.mark.parametrize("code", Code)
def test_every_code_travels_with_an_error_status(code: Code) -> None:
    assert 400 <= status_of(code) < 600


def test_a_configuration_error_lists_its_problems_line_by_line() -> None:
    error = ConfigError(("models.a.cmd: missing", "listeners.x.bind: no port"))

    assert str(error).splitlines() == list(error.problems)


def test_a_request_error_speaks_as_its_refusal_does() -> None:
    refusal = Refusal(code=Code.QUEUE_FULL, message="4 are waiting for chat already")

    assert str(RequestError(refusal)) == refusal.message


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("org/qwen3:8b-q4@x", "org/qwen3:8b-q4@x"),
        ("my model", '"my model"'),
        ("a.b", '"a.b"'),
        ("größe", "größe"),
        ("", '""'),
        ("two\nlines", r'"two\nlines"'),
        ("x" * 100, f'"{"x" * 59}…"'),
    ],
)
def test_a_key_is_told_bare_where_that_is_clear_and_quoted_else(key: str, told: str) -> None:
    assert key_text(key) == told
