from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qmsup import places as where
from qmsup.__main__ import main
from qmsup.transport import context
from tests.support.standin import StandInScheduler


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def scheduler(places: Path) -> Iterator[StandInScheduler]:
    where.make_private(where.runtime_dir())
    with StandInScheduler(where.scheduler_endpoint()) as standing:
        yield standing
    context.destroy()


@pytest.fixture
def qmsup(places: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process."""

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, printed.out, printed.err)

    return run
