import json

import pytest

from qmsup.upstream import job_answers
from qmsup.upstream.call import Answered, Unanswered
from qmsup.upstream.job_answers import Begun, Forgotten, Stands, Unclear


def answered(document: object, status: int = 200) -> Answered:
    return Answered(status=status, body=json.dumps(document).encode())


@pytest.mark.parametrize(("told", "theirs"), [("a7", "a7"), (7, "7"), (0, "0")])
def test_a_job_that_was_taken_has_an_id(told: object, theirs: str) -> None:
    document = {"id": told, "status": "queued"}

    assert job_answers.begun(answered(document, 202)) == Begun(theirs=theirs, document=document)


@pytest.mark.parametrize(
    "answer",
    [
        answered({"id": "a"}, 429),
        answered({"status": "queued"}),
        answered({"id": ""}),
        answered({"id": None}),
        answered({"id": True}),
        answered(["id"]),
        Answered(status=202, body=b"queued"),
        Answered(status=202, body=b"[" * 100_000),
    ],
)
def test_any_other_answer_took_none(answer: Answered) -> None:
    assert job_answers.begun(answer) is None


@pytest.mark.parametrize(
    ("status", "is_over"),
    [
        ("queued", False),
        ("generating", False),
        ("a word of tomorrow", False),
        ("completed", True),
        ("failed", True),
        ("cancelled", True),
    ],
)
def test_a_document_says_how_a_job_stands(status: str, is_over: bool) -> None:
    answer = answered({"id": "a", "status": status})

    assert job_answers.stands(answer) == Stands(text=answer.body, is_over=is_over)


@pytest.mark.parametrize("status", [404, 410])
def test_a_server_may_have_forgotten_it(status: int) -> None:
    assert isinstance(job_answers.stands(Answered(status=status, body=b"")), Forgotten)


@pytest.mark.parametrize(
    "answer",
    [
        Unanswered(because="nobody there"),
        answered({"error": "trouble"}, 500),
        answered({"error": "trouble"}, 429),
        answered({"id": "a"}),
        answered({"status": 7}),
        Answered(status=200, body=b"\xff"),
    ],
)
def test_whatever_else_comes_says_nothing_of_it(answer: Answered | Unanswered) -> None:
    assert isinstance(job_answers.stands(answer), Unclear)


def large(result: object, **members: object) -> bytes:
    return json.dumps({"id": "a", "result": result, **members}).encode()


def test_a_large_document_says_how_a_job_stands_too() -> None:
    video = "A" * 1_000_000
    assert job_answers.is_over(large({"b64_json": video}, status="completed"))
    assert job_answers.status_in(large(video, status="generating", more=[1])) == "generating"
    deceived = large('of "status": "failed"' + video, status="queued")
    assert job_answers.status_in(deceived) == "queued"


@pytest.mark.parametrize("members", [{}, {"status": 7}, {"status": None}])
def test_a_large_document_may_say_nothing_of_it(members: dict[str, object]) -> None:
    assert job_answers.status_in(large('"status": "x"' + "A" * 100_000, **members)) is None


@pytest.mark.parametrize("theirs", ["a", 7, 'a"b', ""])
def test_only_the_id_is_another(theirs: object) -> None:
    text = json.dumps({"x": 'of "id": "a"', "id": theirs, "result": {"b": "c"}}).encode()

    told = job_answers.renamed(text, "ours")

    assert json.loads(told) == {"x": 'of "id": "a"', "id": "ours", "result": {"b": "c"}}


def test_a_new_job_says_where_to_ask_for_it_if_its_server_does() -> None:
    assert json.loads(job_answers.named({"id": 7, "x": 1}, "ours", "/p")) == {"id": "ours", "x": 1}
    told = job_answers.named({"id": "a", "poll_url": "/q"}, "ours", "/p")
    assert json.loads(told) == {"id": "ours", "poll_url": "/p"}


def test_a_job_that_was_lost_has_failed_and_keeps_what_was_known_of_it() -> None:
    known = {"id": "a", "kind": "img_gen", "status": "generating", "created": 5, "poll_url": "/q"}

    told = job_answers.failed(json.dumps(known).encode(), "job_lost", "the dog ate it", 9.7)

    assert json.loads(told) == {
        "id": "a",
        "kind": "img_gen",
        "status": "failed",
        "created": 5,
        "completed": 9,
        "queue_position": 0,
        "result": None,
        "error": {"code": "job_lost", "message": "the dog ate it"},
    }
    assert job_answers.is_over(told)
