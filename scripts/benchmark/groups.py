"""The order of a run: whom to bring up together, and what to measure while they are up."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from qmsup.control.client import Client
from scripts.benchmark import peers, wishes
from scripts.benchmark.course import Course
from scripts.benchmark.figures import Who
from scripts.benchmark.notes import Notes
from scripts.benchmark.peers import Peer
from scripts.benchmark.plans import Plan
from scripts.benchmark.scenarios import (
    cold,
    crowd,
    death,
    decisions,
    grants,
    idle,
    leaving,
    places,
    small,
    streams,
    swaps,
)
from scripts.benchmark.targets import Row

NGINX_MISSING = "nginx is not installed, so its column is empty: apt install nginx"
_NO_LIMIT = 4096  # requests at once: more than any scenario has


def run_all(course: Course) -> list[Row]:
    """Every group in turn."""
    rows = [*real_children(course), *canned_children(course)]
    if course.with_qmsup:
        rows += [*crowd.measure(course), *cold.measure(course), *decisions.measure(course)]
        rows += [*places.measure(course), *death.measure(course), *idle.measure(course)]
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
    direct_notes = course.programs.folder / "direct.notes"
    direct = peers.start_direct(
        course.programs, lambda port: peers.upstream_command(port, notes=direct_notes)
    )
    _measure_generator(course, direct)
    compared = [direct]
    _add_nginx(course, compared, direct)
    noted: dict[Who, Path] = {peer.who: direct_notes for peer in compared if peer.who is Who.NGINX}
    if not course.with_qmsup:
        rows = [
            *streams.measure(course, compared),
            *leaving.from_streams(course, _with_notes(compared, noted)),
        ]
        _stop(course, compared)
        return rows
    own_notes = {name: course.programs.folder / f"{name}.notes" for name in ("fake", "single")}
    qmsup = peers.start_qmsup(course.programs, "canned", _canned_models(own_notes))
    with Client(qmsup.endpoint) as client:
        for name in own_notes:
            client.ask("load", model=name)
    compared.append(qmsup.main)
    noted[Who.QMSUP] = own_notes["fake"]
    rows = [
        *streams.measure(course, compared),
        *leaving.from_streams(course, _with_notes(compared, noted)),
        *leaving.from_the_line(course, qmsup),
        *leaving.with_their_worker(course, qmsup),
        *grants.measure(course, qmsup),
    ]
    _stop(course, compared)
    return rows


def _canned_models(notes: Mapping[str, Path]) -> dict[str, dict[str, object]]:
    return {
        name: peers.model(
            peers.upstream_command("${PORT}", notes=file),
            vram_gb=0.1,
            limit=_NO_LIMIT if name == "fake" else 1,
            kind="generic",
        )
        for name, file in notes.items()
    }


def _with_notes(compared: Sequence[Peer], noted: Mapping[Who, Path]) -> list[tuple[Peer, Notes]]:
    return [(peer, Notes(noted[peer.who])) for peer in compared if peer.who in noted]


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
