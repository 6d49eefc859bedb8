import json

from scripts.benchmark import plans
from scripts.benchmark.figures import spread
from scripts.benchmark.plans import Plan, Result


def test_a_plan_survives_the_way_to_the_load_generator() -> None:
    plan = Plan(port=1, path="/v1/x", body='{"a": 1}', clients=3, stamped=True)

    assert plans.plan_from_text(plans.plan_to_text(plan)) == plan


def test_a_result_survives_the_way_back() -> None:
    result = Result(
        seconds=2.0,
        answers=10,
        events=40,
        errors=1,
        bad_status=0,
        reconnects=0,
        latency_us=spread([1.0, 2.0]),
        first_byte_us=spread([1.0]),
        delay_us=spread([5.0]),
        own_cpu_s=0.5,
    )

    told = plans.result_from_object(json.loads(plans.result_to_text(result)))

    assert told == result
    assert (told.answers_per_s, told.events_per_s) == (5.0, 20.0)
