import json

from scripts.benchmark import canned


def test_an_event_is_one_chunk_of_the_length_it_says() -> None:
    size, body = canned.event(123_456_789).split(b"\r\n", 1)

    assert int(size, 16) == canned.EVENT_BYTES
    assert len(body) == canned.EVENT_BYTES + len(b"\r\n")
    assert body.endswith(b"\n\n\r\n")


def test_an_event_carries_json_with_the_time_of_its_making() -> None:
    body = canned.event(123_456_789).split(b"\r\n")[1].decode()

    assert int(json.loads(body.removeprefix("data: "))["t"]) == 123_456_789


def test_a_whole_answer_has_the_length_it_says() -> None:
    head, body = canned.whole(canned.ANSWER, closes=True).split(b"\r\n\r\n", 1)

    assert b"Content-Length: %d" % len(body) in head
    assert b"Connection: close" in head
    assert json.loads(body)["object"] == "chat.completion"
