import json
import socket
import threading

import pytest

from scripts.soaking.clients import Asking, Ending, ask, judge

ASKING = Asking(at_s=0, listener="main", model="m", streams=True, words=2)
WHOLE = Asking(at_s=0, listener="main", model="m", streams=False, words=2)
OK = b"HTTP/1.1 200 OK\r\n\r\n"
END = b"data: [DONE]\n\n\r\n0\r\n\r\n"


def event(word: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n"


def body(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


STORIES = {
    "a stream that is whole": (ASKING, OK + event("m0 ") + event("m1 ") + END, "answered"),
    "a stream that lacks a word": (ASKING, OK + event("m0 ") + END, "wrong words"),
    "a stream of another model": (ASKING, OK + event("x0 ") + event("x1 ") + END, "wrong words"),
    "a stream that ends early": (ASKING, OK + event("m0 "), "cut in the stream"),
    "a stream with an error": (ASKING, OK + b'data: {"error": {"code": "gone"}}', "refused gone"),
    "an error status": (ASKING, b'HTTP/1.1 503 X\r\n\r\n{"code": "full"}', "refused full"),
    "an error status without a code": (ASKING, b"HTTP/1.1 500 X\r\n\r\noops", "wrong 500"),
    "nothing at all": (ASKING, b"", "cut before the head"),
    "an answer in one piece": (WHOLE, OK + body("m0 m1 "), "answered"),
    "another answer in one piece": (WHOLE, OK + body("m0 "), "wrong words"),
    "half an answer in one piece": (WHOLE, OK + body("m0 m1 ")[:-4], "cut in the body"),
    "something else in one piece": (WHOLE, OK + b"{}", "wrong no answer"),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_came_says_how_it_ended(story: str) -> None:
    asking, received, ending = STORIES[story]

    assert " ".join(judge(asking, received)).strip() == ending


@pytest.mark.parametrize(("leaves", "ending"), [(0.05, Ending.LEFT), (None, Ending.CUT)])
def test_a_client_leaves_in_time_or_stays_to_the_end(leaves: float | None, ending: Ending) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        is_done = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(OK + event("m0 "))
                if leaves is not None:
                    is_done.wait(20)

        thread = threading.Thread(target=serve)
        thread.start()
        asking = Asking(
            at_s=0, listener="main", model="m", streams=True, words=2, leaves_after_s=leaves
        )
        ended = ask(server.getsockname()[1], asking, 0.0)
        is_done.set()
        thread.join()

    assert ended.ending is ending
    assert "m0 " in str(ended)


def test_what_a_client_wants_is_in_its_request() -> None:
    asking = Asking(
        at_s=0, listener="main", model="m", streams=True, words=2, timeout_ms=50, hold_ms=0
    )

    assert b"X-QM-Timeout-Ms: 50\r\nX-QM-Hold-Ms: 0\r\n\r\n{" in asking.request()
    assert b"X-QM" not in ASKING.request()
