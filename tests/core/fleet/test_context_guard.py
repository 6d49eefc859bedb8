import pytest

from qmsup.core.fleet.context_guard import Part, PartKind, estimate, is_doubtful, verdict
from qmsup.errors import Code
from qmsup.ids import HostName, ModelId

BOX, CHAT = HostName("box1"), ModelId("chat")


# The parts of a prompt in bytes, and the tokens that are guessed.
@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ("", 0),
        ("text 3", 0),
        ("text 4", 1),
        ("text 4000", 1000),
        ("text 2, text 2", 1),
        ("text 400, image 4000000", 100),
        ("image 4000000", 0),
        ("text 400, other 9000", 100),
    ],
)
def test_a_prompt_is_guessed_by_the_bytes_of_its_text(told: str, tokens: int) -> None:
    words = [part.split() for part in told.split(", ") if part]
    parts = [Part(PartKind(kind), int(size)) for kind, size in words]

    assert estimate(parts) == tokens


@pytest.mark.parametrize(
    ("estimated", "counted", "context", "passes"),
    [
        (100, None, 4096, True),
        (4095, None, 4096, True),
        (4096, None, 4096, False),  # no room is left for an answer
        (9000, None, 4096, False),
        (9000, None, None, True),  # nobody knows what fits
        (9000, 4000, 4096, True),  # who counted knows better
        (100, 5000, 4096, False),
        (100, 4096, 4096, False),
        (100, 5000, None, True),
        (100, 0, 4096, True),
    ],
)
def test_a_prompt_that_cannot_fit_is_refused(
    *, estimated: int, counted: int | None, context: int | None, passes: bool
) -> None:
    refusal = verdict(BOX, CHAT, estimated=estimated, counted=counted, context=context)

    assert (refusal is None) == passes


def test_a_refusal_names_both_numbers_and_what_to_do() -> None:
    refusal = verdict(BOX, CHAT, estimated=9000, context=4096)

    assert refusal is not None
    assert refusal.code is Code.CONTEXT_LENGTH_EXCEEDED
    assert refusal.message == (
        "the prompt has about 9000 tokens, and a slot of chat on host box1 holds 4096 with the answer: "
        "shorten it, or give the model a larger context"
    )


def test_a_counted_prompt_is_not_called_a_guess() -> None:
    refusal = verdict(BOX, CHAT, estimated=9000, counted=9001, context=4096)

    assert refusal is not None
    assert "has 9001 tokens" in refusal.message


@pytest.mark.parametrize(
    ("estimated", "doubtful"), [(99, False), (100, True), (199, True), (200, False)]
)
def test_an_estimate_is_doubted_near_the_limit_alone(estimated: int, *, doubtful: bool) -> None:
    assert is_doubtful(estimated, 100) is doubtful
