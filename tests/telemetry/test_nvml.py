import contextlib
import subprocess
import threading
import time
from dataclasses import replace

import pynvml
import pytest

from qmsup.core.vram.sample import Card, Use
from qmsup.telemetry.nvml import Nvml
from qmsup.units import MiB
from tests.fakes.gpu import (
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    FakeCard,
    FakeGpu,
    FakeUse,
    State,
)
from tests.support.gpu import holder, holding

TWO = (FakeCard(uuid="GPU-1"), FakeCard(uuid="GPU-2", name="Fake 8 GB", total=8192))


class Clock:
    """Time that stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_card_is_read_by_uuid_with_what_programs_can_have_of_it(gpu: FakeGpu) -> None:
    gpu.show(State(cards=(FakeCard(total=24576, reserved=400, base=500),)))

    sample = Nvml().read()

    assert sample.cards == (
        Card(
            uuid="GPU-1",
            name="Fake 24 GB",
            total=MiB(24176),
            used=MiB(500),
            has_processes=True,
        ),
    )
    assert sample.cards[0].free == MiB(23676)


def test_an_old_driver_counts_what_it_keeps_as_used_and_lists_processes_all_the_same(
    gpu: FakeGpu,
) -> None:
    card = FakeCard(total=24576, reserved=400, base=500)
    gpu.show(State(cards=(card,), uses=(FakeUse(pid=7, used=100),), old=1))

    sample = Nvml().read()

    assert (sample.cards[0].total, sample.cards[0].used) == (24576, 1000)
    assert sample.uses == (Use(pid=7, card="GPU-1", used=MiB(100)),)


def test_a_process_that_computes_and_draws_is_counted_once(gpu: FakeGpu) -> None:
    uses = (
        FakeUse(pid=7, used=100),
        FakeUse(pid=8, used=300, kind="cg"),
        FakeUse(pid=9, used=50, kind="g"),
    )
    gpu.show(State(uses=uses))

    sample = Nvml().read()

    assert {(use.pid, use.used) for use in sample.uses} == {(7, 100), (8, 300), (9, 50)}
    assert sample.cards[0].used == 450


def test_what_is_not_available_of_one_process_is_none_and_of_the_others_known(gpu: FakeGpu) -> None:
    uses = (FakeUse(pid=7, used=100, kind="cg"), FakeUse(pid=8, used=300))
    gpu.show(State(uses=uses, hidden=(7,)))

    sample = Nvml().read()

    assert {use.pid: use.used for use in sample.uses} == {7: None, 8: 300}
    assert sample.cards[0].used == 400


def test_a_card_without_a_list_of_processes_says_so(gpu: FakeGpu) -> None:
    gpu.show(State(uses=(FakeUse(pid=7, used=100),), lists=NOT_SUPPORTED))

    sample = Nvml().read()

    assert [card.has_processes for card in sample.cards] == [False]
    assert sample.cards[0].used == 100
    assert sample.uses == ()


def test_a_driver_too_old_to_list_processes_is_as_good_as_one_that_may_not(gpu: FakeGpu) -> None:
    gpu.show(State(uses=(FakeUse(pid=7, used=100),), old=2))

    sample = Nvml().read()

    assert (sample.cards[0].used, sample.cards[0].has_processes, sample.uses) == (100, False, ())


def test_of_two_cards_each_has_its_own_processes(gpu: FakeGpu) -> None:
    uses = (FakeUse(pid=7, used=100), FakeUse(pid=7, used=200, card="GPU-2"))
    gpu.show(State(cards=TWO, uses=uses))

    sample = Nvml().read()

    assert [(card.uuid, card.used) for card in sample.cards] == [("GPU-1", 100), ("GPU-2", 200)]
    assert {(use.card, use.used) for use in sample.uses} == {("GPU-1", 100), ("GPU-2", 200)}


def test_cards_that_models_will_not_see_are_not_read(gpu: FakeGpu) -> None:
    gpu.show(State(cards=TWO))

    assert [card.uuid for card in Nvml(wish="1").read().cards] == ["GPU-2"]


def test_a_split_card_is_its_parts(gpu: FakeGpu) -> None:
    parts = (FakeCard(uuid="MIG-1", total=5000), FakeCard(uuid="MIG-2", total=9000))
    uses = (FakeUse(pid=7, used=100, card="MIG-2"),)
    gpu.show(State(cards=(FakeCard(parts=parts), TWO[1]), uses=uses))

    sample = Nvml().read()

    assert [(card.uuid, card.total) for card in sample.cards] == [
        ("MIG-1", 5000),
        ("MIG-2", 9000),
        ("GPU-2", 8192),
    ]
    assert sample.uses == (Use(pid=7, card="MIG-2", used=MiB(100)),)


def test_a_split_card_one_part_of_which_is_lost_is_tried_again_later(gpu: FakeGpu) -> None:
    part = FakeCard(uuid="MIG-1", total=5000)
    gpu.show(State(cards=(FakeCard(parts=(replace(part, error=GPU_IS_LOST),)), TWO[1])))
    clock = Clock()
    nvml = Nvml(clock=clock)

    assert [card.uuid for card in nvml.read().cards] == ["GPU-2"]
    gpu.change(cards=(FakeCard(parts=(part,)), TWO[1]))
    clock.now += 1
    assert [card.uuid for card in nvml.read().cards] == ["MIG-1", "GPU-2"]


def test_a_card_that_cannot_tell_its_memory_is_left_out_and_is_no_trouble(gpu: FakeGpu) -> None:
    gpu.show(State(cards=TWO))
    nvml = Nvml(clock=Clock())
    nvml.read()
    gpu.change(cards=(FakeCard(uuid="GPU-1", error=NOT_SUPPORTED), TWO[1]))

    assert [card.uuid for card in nvml.read().cards] == ["GPU-2"]
    gpu.change(cards=TWO)
    assert [card.uuid for card in nvml.read().cards] == ["GPU-1", "GPU-2"]


def test_without_a_driver_there_is_nothing_and_a_driver_that_comes_is_found(gpu: FakeGpu) -> None:
    gpu.show(State(init=DRIVER_NOT_LOADED))
    clock = Clock()
    nvml = Nvml(clock=clock)

    assert nvml.read().cards == ()
    gpu.change(init=0)
    assert nvml.read().cards == (), "not asked again at once"
    clock.now += 1
    assert len(nvml.read().cards) == 1


def test_a_driver_that_goes_and_returns_is_read_again(gpu: FakeGpu) -> None:
    gpu.show(State())
    clock = Clock()
    nvml = Nvml(clock=clock)
    nvml.read()

    gpu.change(init=DRIVER_NOT_LOADED)
    assert nvml.read().cards == ()
    gpu.change(init=0, uses=(FakeUse(pid=7, used=100),))
    assert nvml.read().cards == ()
    clock.now += 1

    assert [card.used for card in nvml.read().cards] == [100]


def test_the_longer_a_driver_is_away_the_less_often_it_is_asked(gpu: FakeGpu) -> None:
    clock = Clock()
    nvml = Nvml(clock=clock)
    nvml.read()  # no file, no driver
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        clock.now += pause - 0.5
        gpu.show(State())
        assert nvml.read().cards == ()
        gpu.file.unlink()
        clock.now += 0.5
        nvml.read()

    gpu.show(State())
    clock.now += 60
    assert len(nvml.read().cards) == 1
    gpu.change(init=DRIVER_NOT_LOADED)
    nvml.read()
    gpu.change(init=0)
    clock.now += 1
    assert len(nvml.read().cards) == 1, "after a good reading the first pause is short again"


def test_a_lost_card_is_left_out_and_the_others_stay_until_it_is_back(
    gpu: FakeGpu, caplog: pytest.LogCaptureFixture
) -> None:
    gpu.show(State(cards=TWO))
    clock = Clock()
    nvml = Nvml(clock=clock)
    nvml.read()

    gpu.change(cards=(FakeCard(uuid="GPU-1", error=GPU_IS_LOST), TWO[1]))
    seen = [nvml.read().cards, nvml.read().cards]
    clock.now += 1
    seen.append(nvml.read().cards)
    gpu.change(cards=TWO)
    seen.append(nvml.read().cards)

    assert [[card.uuid for card in cards] for cards in seen] == [["GPU-2"]] * 4
    clock.now += 2
    assert [card.uuid for card in nvml.read().cards] == ["GPU-1", "GPU-2"]
    assert "gpu.unreadable" in caplog.messages


@pytest.mark.parametrize("question", ["nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo"])
def test_an_answer_that_nobody_thought_of_is_no_reason_to_ask_never_again(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    def muddle(*_: object) -> None:
        b"\xff".decode()

    gpu.show(State())
    clock = Clock()
    nvml = Nvml(clock=clock)
    with monkeypatch.context() as broken:
        broken.setattr(pynvml, question, muddle)
        with pytest.raises(UnicodeDecodeError):
            nvml.read()
        clock.now += 0.9
        with contextlib.suppress(UnicodeDecodeError):
            assert nvml.read().cards == ()

    clock.now += 1.2

    assert len(nvml.read().cards) == 1


def test_a_driver_that_is_slow_is_waited_for(gpu: FakeGpu) -> None:
    gpu.show(State(hang_ms=30))
    began = time.monotonic()

    assert len(Nvml().read().cards) == 1
    assert time.monotonic() - began >= 0.03


def test_closing_twice_and_reading_after_it_is_fine(gpu: FakeGpu) -> None:
    gpu.show(State())
    nvml = Nvml()
    nvml.read()
    nvml.close()
    nvml.close()

    assert len(nvml.read().cards) == 1
    gpu.change(init=DRIVER_NOT_LOADED)
    nvml.close()


def test_what_a_program_claims_is_in_use_until_it_ends_however_it_does(gpu: FakeGpu) -> None:
    gpu.show(State(cards=(FakeCard(total=8000, base=100),)))
    nvml = Nvml()

    with holding(gpu, 5000) as game:
        sample = nvml.read()
        game.kill()
        game.wait()

    assert sample.cards[0].used == 5100
    assert sample.uses == (Use(pid=game.pid, card="GPU-1", used=MiB(5000)),)
    after = nvml.read()
    assert (after.cards[0].used, after.uses) == (100, ())


def test_memory_of_the_dead_may_come_back_late_and_is_nobodys(gpu: FakeGpu) -> None:
    gpu.show(State(lag_ms=3_600_000))
    nvml = Nvml()

    with holding(gpu, 5000):
        pass

    late = nvml.read()
    assert (late.cards[0].used, late.uses) == (5000, ())
    gpu.change(lag_ms=0)
    assert nvml.read().cards[0].used == 0


def test_a_card_gives_no_more_than_it_has(gpu: FakeGpu) -> None:
    gpu.show(State(cards=(FakeCard(total=8000, reserved=500, base=500),)))

    with holding(gpu, 5000):
        game = holder(gpu, 2001)
        refused = subprocess.run(game, capture_output=True, text=True, check=False)
        with holding(gpu, 2000):
            pass

    assert "out of memory, 2000 MiB are left" in refused.stderr


def test_what_is_taken_while_it_is_read_is_seen_on_the_card_and_of_whom_or_not_at_all(
    gpu: FakeGpu,
) -> None:
    uses = [(), (FakeUse(pid=7, used=9000),)]
    seen = set()
    for number in range(8):
        gpu.show(State(cards=(FakeCard(base=500),), uses=uses[number % 2], hang_ms=40))
        nvml, pause = Nvml(), number * 0.012
        changing = threading.Timer(pause, lambda n=number: gpu.change(uses=uses[1 - n % 2]))
        changing.start()
        sample = nvml.read()
        changing.join()
        used = sample.cards[0].used
        assert used is not None
        seen.add(used - sum(use.used or 0 for use in sample.uses))
        nvml.close()

    assert seen == {500}
