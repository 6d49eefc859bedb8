import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmsup.transport import context
from qmsup.transport.dealer import DealerSocket
from qmsup.transport.router import RouterSocket
from scripts.soaking.muddle import Muddle, Muddled, lay
from tests.support.box import until

NAME = f"main-{os.getpid()}-ab12".encode()


@contextmanager
def between(places: Path, muddled: Muddled) -> Iterator[tuple[RouterSocket, DealerSocket, Muddle]]:
    (places / "run").mkdir()
    front, behind = lay(places)
    router = RouterSocket(f"ipc://{behind}")
    with Muddle(front, behind, random.Random(7)) as muddle:
        muddle.muddled = muddled
        dealer = DealerSocket(f"ipc://{front}", NAME)
        try:
            yield router, dealer, muddle
        finally:
            dealer.close()
            router.close()
    context.destroy()


def heard(router: RouterSocket, count: int) -> list[bytes]:
    frames: list[bytes] = []

    def look() -> bool:
        for name, more in router.receive():
            assert name == NAME
            frames.extend(more)
        return len(frames) >= count

    until(look, what=f"{count} frames of {frames}")
    return frames


def test_what_is_not_muddled_arrives_on_both_ways(places: Path) -> None:
    with between(places, Muddled()) as (router, dealer, _):
        dealer.send([b"one", b"two"])
        dealer.send([b"three"])
        assert heard(router, 3) == [b"one", b"two", b"three"]

        assert router.send(NAME, b"back")
        assert until(dealer.receive) == [b"back"]


def test_messages_are_lost_and_repeated_as_the_dice_say(places: Path) -> None:
    with between(places, Muddled(loses=0.5, repeats=0.5)) as (router, dealer, muddle):
        sent = [str(number).encode() for number in range(200)]
        dealer.send(sent)
        until(lambda: muddle.counts["lost"])
        muddle.muddled = Muddled()
        dealer.send([b"last"])
        frames: list[bytes] = []
        while b"last" not in frames:
            frames += heard(router, 1)

    lost, repeated = muddle.counts["lost"], muddle.counts["repeated"]
    assert 60 < lost < 140
    assert repeated
    assert len(frames) == 200 - lost + repeated + 1
    assert list(dict.fromkeys(frames)) == [m for m in sent if m in frames] + [b"last"]


def test_what_is_delayed_keeps_its_order(places: Path) -> None:
    with between(places, Muddled(latest_s=0.05)) as (router, dealer, muddle):
        sent = [str(number).encode() for number in range(10)]
        for message in sent:
            dealer.send([message])

        assert heard(router, 10) == sent
        assert muddle.counts["delayed"]


def test_what_stands_in_for_a_dead_worker_goes_with_it(places: Path) -> None:
    with between(places, Muddled()) as (router, _, muddle):
        with subprocess.Popen(["true"]) as gone:
            gone.wait()
        name = f"main-{gone.pid}-ff".encode()
        late = DealerSocket(f"ipc://{places}/front/scheduler.sock", name)
        late.send([b"x"])
        until(lambda: not muddle._peers, what="nobody left")
        late.close()
        assert all(name != NAME for name, _ in router.receive())


def test_what_is_not_muddled_is_reached_by_links(places: Path) -> None:
    (places / "run").mkdir()
    front, behind = lay(places)

    for name in ("feed.sock", "jobs.sock"):
        (behind.parent / name).touch()
        assert (front.parent / name).exists()
    with pytest.raises(FileExistsError):
        lay(places)
