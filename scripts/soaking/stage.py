"""`qmsup serve`, but its listeners meet the scheduler in another folder of sockets: `python -m scripts.soaking.stage`.

QMSUP_CONFIG=FILE python -m scripts.soaking.stage FOLDER
"""

import os
import sys
from pathlib import Path

import qmsup.config
from qmsup import log
from qmsup.daemon.folders import make_folders
from qmsup.daemon.member import Member
from qmsup.daemon.serve import Serve
from qmsup.spec import Spec


class Elsewhere(Member):
    """A listener that looks for sockets in another folder."""

    def __init__(self, name: str, config: Path, sockets: Path) -> None:
        super().__init__(f"listener {name}", ["listener", name, "-c", str(config)])
        self._argv = ["/usr/bin/env", f"QMSUP_RUNTIME_DIR={sockets}", *self._argv]


class Stage(Serve):
    """The same members, but for their listeners' surroundings."""

    def __init__(self, spec: Spec, config: Path, sockets: Path) -> None:
        super().__init__(spec, config)
        self._listeners = [Elsewhere(name, config, sockets) for name in spec.listeners]


def main() -> int:
    """As `qmsup serve`."""
    config = Path(os.environ["QMSUP_CONFIG"])
    spec = qmsup.config.load(config)
    log.set_up(level=spec.log_level, style=spec.log_format)
    make_folders()
    return Stage(spec, config, Path(sys.argv[1])).run()


if __name__ == "__main__":
    sys.exit(main())
