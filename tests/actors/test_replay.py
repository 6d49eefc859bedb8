"""A recorded life, run again through a fresh scheduler, comes to the same effects."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.actors.journal import Journal
from qmsup.actors.journal_folder import lines_in
from qmsup.actors.journal_lines import is_kept
from qmsup.actors.replay import lives_in, replay
from qmsup.core.scheduling.events import ConfigApplied
from qmsup.ids import RequestId
from qmsup.wire.listening import Done, Granted, Moved
from tests.support.journals import SPEC, Session, header_of
from tests.support.scheduler_actor import QUICK, becomes, models_of, scheduler_of

ELSEWHERE = """
import sys
from qmsup.actors.replay import lives_in, replay
(life,) = lives_in(open(sys.argv[1], "rb"))
print(len(life.turns), len([*replay(life)]))
"""


def dumped(seed: int) -> list[bytes]:
    lines: list[bytes] = []
    journal = Journal(header_of(), write=lambda more: lines.extend(more.splitlines()))
    Session(journal.note).be_busy(seed)
    journal.flush()
    return lines


@pytest.mark.parametrize("seed", range(6))
def test_a_busy_life_replays_to_the_same_effects(seed: int) -> None:
    (life,) = lives_in(dumped(seed))

    assert life.gap == ""
    assert any(isinstance(turn.event, ConfigApplied) for turn in life.turns)
    assert sum(len(turn.effects) for turn in life.turns) > 100
    assert [*replay(life)] == []


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_another_process_replays_it_alike(tmp_path: Path, hash_seed: str) -> None:
    file = tmp_path / "journal"
    file.write_bytes(b"\n".join((*dumped(9), b"")))

    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(file)],
        env={"PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == f"{len(dumped(9)) - 1} 0\n", done.stderr


def test_a_scheduler_that_decides_otherwise_is_found_out() -> None:
    (life,) = lives_in(dumped(1))
    assert life.header is not None
    life.header = replace(life.header, spec=replace(SPEC, vram_budget=None))

    first = next(replay(life))

    assert first.replayed != [e for e in first.turn.effects if is_kept(e)]


def test_the_actor_s_own_journal_replays(places: Path, checked: None) -> None:
    with scheduler_of(models_of(QUICK), places) as running:
        worker, client = running.worker(), running.client()
        for request in ("r1", "r2"):
            worker.takes_up(request)
        worker.ask("r3", streaming=True)
        worker.hears(Moved)
        worker.say(Done(request=RequestId("r1"), outcome="finished"))
        assert worker.hears(Granted).request == "r3"
        client.body("unload", models=["m"])
        assert client.body("journal") == {"folder": str(where.journal_dir()), "is_written": True}
        becomes(lambda: client.model()["state"], "stopped")

        (life,) = lives_in(lines_in(where.journal_dir()))

    assert life.gap == ""
    assert len(life.turns) > 8
    assert [*replay(life)] == []
    (life,) = lives_in(lines_in(where.journal_dir()))
    assert life.gap == "", "whatever was in hand at the end is there, too"


def test_a_life_that_is_not_whole_says_what_is_missing() -> None:
    header, *turns = dumped(3)

    def gap(*lines: bytes) -> str:
        return lives_in(lines)[-1].gap

    assert gap(*turns) == "its beginning is no longer in the journal"
    assert gap(header, *turns[:5], *turns[6:]) == "nothing is recorded between turns 5 and 7"
    assert gap(header, *turns[:5], turns[5][:9]) == "1 of its lines cannot be read"
    assert gap(header, b"\n", *turns) == ""
    with pytest.raises(ValueError, match="no longer in the journal"):
        next(replay(lives_in(turns)[0]))


def test_lives_are_told_apart() -> None:
    lives = lives_in([b"torn", *dumped(1), *dumped(2)])

    assert [life.header is None for life in lives] == [True, False, False]
    assert lives_in([]) == []
