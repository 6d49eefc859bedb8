"""A thread that reads, so that nobody else hangs."""

import logging

import pytest

from qmsup.actors.sampling import Sampled, Sampler
from tests.support.children import wait_until
from tests.support.memory import ScriptedReader, Told, sample_of


def test_it_reads_when_asked_and_not_before() -> None:
    reader, told = ScriptedReader(), Told()
    sampler = Sampler(lambda: reader, told)
    assert sampler._thread is None

    sampler.ask([7, 8])

    assert told.waits_for(Sampled) == Sampled(sample=sample_of(1500))
    assert reader.reads == [[7, 8]]
    sampler.close()
    wait_until(lambda: reader.closed == 1)


def test_what_cannot_be_read_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    reader, told = ScriptedReader(says=RuntimeError("the bus is gone")), Told()
    sampler = Sampler(lambda: reader, told)

    with caplog.at_level(logging.ERROR):
        sampler.ask([])
        failed = told.waits_for(Sampled)
        sampler.ask([])
        wait_until(lambda: len(told.all) == 2)
    reader.says = sample_of(9500)
    sampler.ask([])

    assert failed.sample is None
    assert "the bus is gone" in failed.trouble
    assert told.waits_for(Sampled, lambda s: s.sample is not None).sample == sample_of(9500)
    assert [record.message for record in caplog.records] == ["telemetry.failed"]
    sampler.close()


def test_a_reader_that_cannot_be_made_is_made_later() -> None:
    told, tries = Told(), list[int]()

    def make() -> ScriptedReader:
        tries.append(1)
        if len(tries) < 2:
            raise OSError("no library")
        return ScriptedReader()

    sampler = Sampler(make, told)
    sampler.ask([])
    assert "no library" in told.waits_for(Sampled).trouble
    sampler.ask([])

    told.waits_for(Sampled, lambda s: s.sample is not None)
    sampler.close()


def test_nothing_is_read_for_who_never_asks() -> None:
    sampler = Sampler(ScriptedReader, Told())
    sampler.close()

    assert sampler._thread is None
