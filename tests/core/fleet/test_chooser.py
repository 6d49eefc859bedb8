"""Where a new conversation goes: a table of hosts as a person would write them down."""

import pytest

from qmsup.core.fleet.chooser import HostView, best, no_host
from qmsup.errors import Code
from qmsup.ids import HostName, ModelId

# A host: NAME, what is said of it, `free` slots, `weight`, `queued`. Unsaid: healthy, free 1, weight 1, queued 0.
# Their order is that of the route.
STORIES = {
    "the one that has it loaded beats one that merely could load it": (
        ["a able free 9", "b loaded free 1"],
        "b",
    ),
    "loaded beats able even without a free slot": (["a able free 9", "b loaded free 0"], "b"),
    "loaded is enough where the configuration does not list it": (["a loaded"], "a"),
    "where nobody has it loaded one that could is taken": (["a able"], "a"),
    "where neither holds nobody is taken": (["a", "b free 9"], None),
    "the freest": (["a loaded free 1", "b loaded free 3", "c loaded free 2"], "b"),
    "a free slot counts by its host's weight": (
        ["a loaded free 3 weight 1", "b loaded free 2 weight 2"],
        "b",
    ),
    "a light host with many slots may still win": (
        ["a loaded free 9 weight 0.5", "b loaded free 4 weight 1"],
        "a",
    ),
    "of equals the shorter line": (
        ["a loaded free 2 queued 3", "b loaded free 2 queued 1", "c loaded free 2 queued 2"],
        "b",
    ),
    "a product is compared, not its factors": (
        ["a loaded free 4 weight 1 queued 2", "b loaded free 2 weight 2 queued 1"],
        "b",
    ),
    "of equals with equal lines the first": (["b loaded free 2", "a loaded free 2"], "b"),
    "a longer line does not outweigh a freer host": (
        ["a loaded free 1", "b loaded free 2 queued 9"],
        "b",
    ),
    "nothing free is still chosen": (["a loaded free 0 queued 4"], "a"),
    "of those with nothing free the shorter line": (
        ["a loaded free 0 queued 4 weight 9", "b loaded free 0 queued 3"],
        "b",
    ),
    "never an unhealthy one": (["a loaded unhealthy free 9", "b able"], "b"),
    "never a draining one": (["a loaded draining free 9", "b able"], "b"),
    "never an unknown one": (["a unknown", "b able"], "b"),
    "nobody to choose from": ([], None),
    "nobody who may be chosen": (["a loaded unhealthy", "b loaded draining", "c unknown"], None),
}


@pytest.mark.parametrize(("told", "chosen"), STORIES.values(), ids=STORIES)
def test_story(told: list[str], chosen: str | None) -> None:
    hosts = _hosts(told)

    assert best(list(hosts), hosts.get) == chosen


def test_a_host_that_is_named_twice_keeps_its_first_place() -> None:
    hosts = _hosts(["a loaded", "b loaded"])

    assert best([HostName("b"), HostName("a"), HostName("b")], hosts.get) == "b"


def test_each_host_is_asked_about_once() -> None:
    hosts = _hosts(["a able", "b able free 3", "c unknown"])
    asked: list[HostName] = []

    def info(host: HostName) -> HostView | None:
        asked.append(host)
        return hosts[host]

    best(list(hosts), info)

    assert asked == ["a", "b", "c"]


def test_a_refusal_says_what_is_wrong_with_each_host() -> None:
    hosts = _hosts(["a loaded unhealthy", "b loaded draining", "c unknown", "d"])

    refusal = no_host(ModelId("chat"), list(hosts), hosts.get)

    assert refusal.code is Code.NO_HOST
    assert refusal.message == (
        "no host can serve chat: a is not healthy, b is draining, c is not known, d does not have the model"
    )


def test_a_host_that_had_the_request_is_told_as_one() -> None:
    hosts = _hosts(["a loaded unhealthy", "b loaded"])

    refusal = no_host(ModelId("chat"), list(hosts), hosts.get, tried=(HostName("b"),))

    assert refusal.message == "no host can serve chat: a is not healthy, b gave no answer"


def test_a_refusal_where_a_route_has_no_hosts_says_so() -> None:
    refusal = no_host(ModelId("chat"), [], _hosts([]).get)

    assert refusal.message == "no host can serve chat: the route has no hosts"


def _hosts(told: list[str]) -> dict[HostName, HostView | None]:
    return dict(_host(line.split()) for line in told)


def _host(words: list[str]) -> tuple[HostName, HostView | None]:
    name, *said = words
    number = {key: float(said[said.index(key) + 1]) for key in said if key.isalpha() and _has(key)}
    view = HostView(
        is_healthy="unhealthy" not in said,
        is_draining="draining" in said,
        is_loaded="loaded" in said,
        can_serve="able" in said,
        free=int(number.get("free", 1)),
        queued=int(number.get("queued", 0)),
        weight=number.get("weight", 1.0),
    )
    return HostName(name), None if "unknown" in said else view


def _has(key: str) -> bool:
    return key in {"free", "queued", "weight"}


def test_a_model_can_be_had_where_it_is_loaded_or_may_be() -> None:
    assert HostView(is_healthy=True, is_loaded=True).has_model
    assert HostView(is_healthy=True, can_serve=True).has_model
    assert not HostView(is_healthy=True).has_model
