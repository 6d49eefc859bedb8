"""Ports that are taken, by real sockets."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.daemon.doctor import ports
from qmsup.daemon.doctor.box import Box
from qmsup.daemon.doctor.ports import look
from qmsup.processes import records
from tests.support.children import FIRST_PORT, running
from tests.support.doctoring import box_with, graded, model
from tests.support.servers import free_port


@contextmanager
def taken() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_free_address_is_well(places: Path) -> None:
    port = free_port()

    assert graded(look(box_with(port=port))) == [("ok", f"127.0.0.1:{port}")]
    assert list(look(Box())) == []


def test_a_taken_address_is_bad_and_its_holder_is_named(places: Path) -> None:
    with taken() as port:
        [finding] = look(box_with(port=port))

    assert finding.grade == "bad"
    assert "Address already in use" in finding.says
    assert f"pid {os.getpid()}" in finding.says
    assert finding.do.startswith("stop what uses it")


def test_an_address_that_our_own_listener_serves_is_well(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process is a qmsup by its command line, for once, and its lock names it.
    where.make_private(where.state_dir())
    where.lock_file().write_text(f"{os.getpid()}\n")
    monkeypatch.setattr("qmsup.daemon.doctor.running._OURS", b"python")
    with taken() as port:
        found = graded(look(box_with(port=port)))

    assert found == [("ok", f"127.0.0.1:{port}")]


def test_an_address_that_a_listener_without_its_scheduler_has_is_no_strangers(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmsup.daemon.doctor.running._OURS", b"python")
    with taken() as port:
        [finding] = look(box_with(port=port))

    assert finding.grade == "warn"
    assert f"pid {os.getpid()}" in finding.says
    assert finding.do.startswith("start the scheduler")


def test_a_models_own_port_that_its_child_of_before_has_is_left_to_the_next_scheduler(
    places: Path,
) -> None:
    with taken() as port, running("sleep", "60") as child:
        gone = replace(child.record, owner=2**22 + 1, owner_ticks=1, port=port)
        records.write(gone)
        at = f"http://127.0.0.1:{port}"
        its_own = replace(model("llama-server", name=gone.model), upstream=at)

        assert list(look(box_with(its_own))) == []
        strange = replace(model("llama-server", name="other"), upstream=at)
        assert graded(look(box_with(strange))) == [("bad", str(port))]


def test_a_models_own_port_that_another_has_is_bad(places: Path) -> None:
    with taken() as port:
        fixed = replace(model("llama-server"), upstream=f"http://127.0.0.1:{port}")
        assert graded(look(box_with(fixed))) == [("bad", str(port))]
    assert list(look(box_with(fixed))) == []


def test_an_upstream_that_is_no_address_is_bad(places: Path) -> None:
    nowhere = replace(model("llama-server"), upstream="nowhere")

    assert graded(look(box_with(nowhere))) == [("bad", "m")]


def test_a_range_with_room_is_well_and_one_without_is_bad(places: Path) -> None:
    several = [model("llama-server", name=name) for name in "abc"]

    assert graded(look(box_with(*several, start_port=FIRST_PORT))) == [("ok", f"from {FIRST_PORT}")]
    assert graded(look(box_with(*several, start_port=65534))) == [("bad", "from 65534")]


def test_a_range_among_the_systems_own_is_told(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "range"
    table.write_text(f"{FIRST_PORT - 5}\t{FIRST_PORT + 500}\n")
    monkeypatch.setattr(ports, "_EPHEMERAL", table)
    box = box_with(model("llama-server"), start_port=FIRST_PORT)

    assert graded(look(box)) == [("warn", f"from {FIRST_PORT}")]
    table.unlink()
    assert graded(look(box)) == [("ok", f"from {FIRST_PORT}")]


def test_a_port_that_two_models_name_is_told(places: Path) -> None:
    port = free_port()
    one, two, far = (
        replace(model("llama-server", name=name), upstream=f"http://{host}:{port}")
        for name, host in (("one", "127.0.0.1"), ("two", "localhost"), ("far", "10.0.0.1"))
    )

    [finding] = look(box_with(one, two, far))

    assert (finding.grade, finding.about) == ("warn", str(port))
    assert finding.says.startswith("one, two name the same port")
    assert list(look(box_with(one, far))) == []


def test_a_model_on_the_port_of_a_listener_cannot_be_loaded(places: Path) -> None:
    port = free_port()
    fixed = replace(model("llama-server"), upstream=f"http://127.0.0.1:{port}")

    assert graded(look(box_with(fixed, port=port)))[1:] == [("bad", str(port))]
