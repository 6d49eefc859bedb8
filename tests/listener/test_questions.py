from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qmsup.errors import RequestError, SchedulerUnavailableError
from qmsup.listener.questions import code_of
from qmsup.listener.relay.engine import RelayOptions
from qmsup.units import Seconds
from qmsup.wire import controlling
from qmsup.wire.controlling import Question, Reply, Trouble
from tests.support.granting import GrantingScheduler
from tests.support.relaying import Relaying, ending_context, relaying, relaying_with_scheduler

Both = tuple[Relaying, GrantingScheduler]
QUIET = RelayOptions(access_log=False)


@pytest.fixture
def both(places: Path) -> Iterator[Both]:
    with relaying_with_scheduler(QUIET) as pair:
        yield pair


def test_another_thread_can_ask_and_gets_the_answers_body(both: Both) -> None:
    engine, scheduler = both
    scheduler.on_question = lambda q: Reply(
        v=controlling.VERSION, id=q.id, ok=True, body={"verb": q.verb, **q.args}
    )

    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda n: engine.link.ask("ps", {"n": n}, Seconds(10.0)), range(50))
        )

    assert answers == [{"verb": "ps", "n": n} for n in range(50)]


def test_a_refusal_is_raised_with_its_code(both: Both) -> None:
    engine, scheduler = both
    scheduler.on_question = lambda q: Reply(
        v=controlling.VERSION,
        id=q.id,
        ok=False,
        error=Trouble(code="model_not_found", message="no model x"),
    )

    with pytest.raises(RequestError, match="no model x") as caught:
        engine.link.ask("unload", {"model": "x"}, Seconds(10.0))

    assert caught.value.refusal.code == "model_not_found"


def test_a_question_is_repeated_with_the_same_id(both: Both) -> None:
    engine, scheduler = both
    seen: list[str] = []

    def second_time(question: Question) -> Reply | None:
        seen.append(question.id)
        return (
            Reply(v=controlling.VERSION, id=question.id, ok=True, body=7)
            if len(seen) == 2
            else None
        )

    scheduler.on_question = second_time

    assert engine.link.ask("ping", {}, Seconds(10.0)) == 7
    assert seen[0] == seen[1]


def test_without_an_answer_the_scheduler_is_unavailable(places: Path) -> None:
    with (
        ending_context(),
        relaying(QUIET) as engine,
        pytest.raises(SchedulerUnavailableError, match="ping"),
    ):
        engine.link.ask("ping", {}, Seconds(0.05))


def test_the_loop_cannot_wait_for_itself(both: Both) -> None:
    engine, _ = both

    with pytest.raises(AssertionError, match="itself"):
        engine.do(lambda: engine.link.ask("ping", {}, Seconds(1.0)))


def test_a_thread_that_asks_when_the_worker_ends_is_told(places: Path) -> None:
    with ending_context(), relaying(QUIET) as engine, ThreadPoolExecutor(1) as pool:
        asking = pool.submit(engine.link.ask, "ping", {}, Seconds(30.0))
        engine.until(lambda: bool(engine.link._questions))

        engine.stop()

        with pytest.raises(SchedulerUnavailableError):
            asking.result(10)


def test_a_code_that_is_not_known_is_a_refusal_all_the_same() -> None:
    assert code_of("queue_full") == "queue_full"
    assert code_of("of the future") == "model_unavailable"
