"""Small requests in front of a real child: what a proxy adds, how many it carries, what each one costs."""

import json
from collections.abc import Sequence

from scripts.benchmark.course import Course, Tallies
from scripts.benchmark.figures import Who
from scripts.benchmark.peers import Peer
from scripts.benchmark.plans import Plan
from scripts.benchmark.programs import ask
from scripts.benchmark.targets import Row, Target, row

_MANY = 16
_PATHS = {"tokenize": "/tokenize", "token": "/v1/completions"}


def measure(course: Course, compared: Sequence[Peer]) -> list[Row]:
    """`/tokenize` (cheap for the child) and a completion of one token, from one client and from sixteen."""
    tallies = Tallies()
    for peer in compared:
        for path in _PATHS.values():  # uncounted: it loads the model, where that is still to do
            ask(peer.port, "POST", path, _body(path).encode())
    for _ in course.each_round("small requests"):
        for peer in compared:
            _one_client(course, peer, tallies)
            _many_clients(course, peer, tallies)
    return _rows(tallies)


def _body(path: str) -> str:
    asked: dict[str, object] = {"model": "tiny-a"}
    asked |= {"content": "hello"} if path == "/tokenize" else {"prompt": "hello", "max_tokens": 1}
    return json.dumps(asked)


def _plan(course: Course, path: str, clients: int, seconds: float) -> Plan:
    return Plan(
        path=path,
        body=_body(path),
        clients=clients,
        warm_s=0.2,
        measure_s=course.seconds(seconds),
    )


def _one_client(course: Course, peer: Peer, tallies: Tallies) -> None:
    for name, path in _PATHS.items():
        measured = course.measure(name, peer, _plan(course, path, 1, 1.0))
        tallies[f"{name} p50"].add(peer.who, measured.result.latency_us.p50)
        tallies[f"{name} p99"].add(peer.who, measured.result.latency_us.p99)


def _many_clients(course: Course, peer: Peer, tallies: Tallies) -> None:
    plan = _plan(course, "/tokenize", _MANY, 1.5)
    measured = course.measure(f"tokenize, {_MANY} clients", peer, plan)
    tallies["many p50"].add(peer.who, measured.result.latency_us.p50)
    tallies["many p99"].add(peer.who, measured.result.latency_us.p99)
    tallies["many rate"].add(peer.who, measured.result.answers_per_s)
    if peer.who is not Who.DIRECT:
        tallies["many cpu"].add(peer.who, measured.cpu_per_answer_us)


def _rows(tallies: Tallies) -> list[Row]:
    one, many = "tokenize, 1 client", f"tokenize, {_MANY} clients"
    return [
        row(f"{one}: p50", "us", tallies["tokenize p50"]),
        row(f"{one}: p99", "us", tallies["tokenize p99"]),
        row(
            f"{one}: added to p50",
            "us",
            tallies["tokenize p50"].over(Who.DIRECT),
            Target(bound=0.9, against=Who.ROUTER),
        ),
        row("1-token completion, 1 client: p50", "us", tallies["token p50"]),
        row(
            "1-token completion, 1 client: added to p50",
            "us",
            tallies["token p50"].over(Who.DIRECT),
            note="the child takes milliseconds for it, so a difference of microseconds is noisy",
        ),
        row(f"{many}: p50", "us", tallies["many p50"]),
        row(f"{many}: added to p50", "us", tallies["many p50"].over(Who.DIRECT)),
        row(f"{many}: p99", "us", tallies["many p99"]),
        row(
            f"{many}: requests/s",
            "1/s",
            tallies["many rate"],
            Target(bound=1.5, at_most=False, against=Who.ROUTER),
            note="what the tool itself reaches with a canned child is said below",
        ),
        row(
            f"{many}: CPU per request",
            "us",
            tallies["many cpu"],
            Target(bound=0.65, against=Who.ROUTER),
            note="of the proxy's own processes: the child's time is left out",
        ),
    ]
