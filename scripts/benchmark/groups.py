"""The order of a run: whom to bring up together, and what to measure while they are up."""

from collections.abc import Sequence

from scripts.benchmark import peers, wishes
from scripts.benchmark.course import Course
from scripts.benchmark.peers import Peer
from scripts.benchmark.plans import Plan
from scripts.benchmark.scenarios import cold, small, streams, swaps
from scripts.benchmark.targets import Row

NGINX_MISSING = "nginx is not installed, so its column is empty: apt install nginx"


def run_all(course: Course) -> list[Row]:
    """Every group in turn."""
    rows = [*real_children(course), *canned_children(course)]
    if course.with_qmsup:
        rows += cold.measure(course)
    return rows


def real_children(course: Course) -> list[Row]:
    """Everyone in front of a real llama-server with a tiny model."""
    course.say("starting real children, and who stands in front of them")
    alpha, bravo = (course.models / f"tiny-{letter}.gguf" for letter in "ab")
    direct = peers.start_direct(course.programs, lambda port: peers.real_command(alpha, port))
    compared = [direct, peers.start_router(course.programs, course.models)]
    _add_nginx(course, compared, direct)
    if course.with_qmsup:
        models = {
            path.stem: peers.model(
                peers.real_command(path, "${PORT}"),
                vram_gb=0.6,
                limit=peers.HTTP_THREADS,
                kind="llama-server",
            )
            for path in (alpha, bravo)
        }
        compared.append(peers.start_qmsup(course.programs, "real", models).main)
    rows = [*small.measure(course, compared), *swaps.measure(course, compared)]
    _stop(course, compared)
    return rows


def canned_children(course: Course) -> list[Row]:
    """Those who can stand in front of a child of our own, which is no bottleneck."""
    course.say("starting canned children, and who stands in front of them")
    direct = peers.start_direct(course.programs, peers.upstream_command)
    _measure_generator(course, direct)
    compared = [direct]
    _add_nginx(course, compared, direct)
    rows = streams.measure(course, compared)
    _stop(course, compared)
    return rows


def _add_nginx(course: Course, compared: list[Peer], direct: Peer) -> None:
    nginx = peers.start_nginx(course.programs, direct.port)
    if nginx:
        compared.append(nginx)
    elif NGINX_MISSING not in course.troubles:
        course.troubles.append(NGINX_MISSING)


def _stop(course: Course, compared: Sequence[Peer]) -> None:
    for peer in reversed(compared):
        course.programs.stop(peer.process)


def _measure_generator(course: Course, direct: Peer) -> None:
    """How far the tool itself goes: figures near these say more about it than about a proxy."""
    plan = Plan(path="/v1/chat/completions", body=wishes.body("fake").decode(), clients=16)
    measured = course.measure("the tool alone", direct, plan)
    cpu_us = measured.result.own_cpu_s / measured.result.answers * 1e6
    course.about["tool alone: answers/s at 16 clients"] = round(measured.result.answers_per_s)
    course.about["tool alone: CPU of the load generator per answer, us"] = round(cpu_us, 1)
