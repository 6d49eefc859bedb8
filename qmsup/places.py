"""Where qmsup keeps its files (interfaces: files). Sockets in the runtime folder, all else in the state folder."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from qmsup.ids import ModelId


def runtime_dir() -> Path:
    """`$QMSUP_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/qmsup`, else `/run/qmsup`."""
    return _place("QMSUP_RUNTIME_DIR", "XDG_RUNTIME_DIR", Path("/run/qmsup"))


def state_dir() -> Path:
    """`$QMSUP_STATE_DIR`, else `$XDG_STATE_HOME/qmsup`, else `/var/lib/qmsup`."""
    return _place("QMSUP_STATE_DIR", "XDG_STATE_HOME", Path("/var/lib/qmsup"))


def _place(own: str, xdg: str, system: Path) -> Path:
    if chosen := os.environ.get(own):
        return Path(chosen)
    if base := os.environ.get(xdg):
        return Path(base) / "qmsup"
    return system


def make_private(folder: Path) -> Path:
    """The folder, made if need be, closed to other users.

    Raises:
        OSError: it cannot be made; the caller names the environment variable that moves it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def scheduler_socket() -> Path:
    """The ROUTER socket: listeners and control clients."""
    return runtime_dir() / "scheduler.sock"


def scheduler_endpoint() -> str:
    """The ROUTER socket as a ZeroMQ address."""
    return f"ipc://{scheduler_socket()}"


def feed_socket() -> Path:
    """The PUB socket: what changes, for whoever looks on."""
    return runtime_dir() / "feed.sock"


def feed_endpoint() -> str:
    """The PUB socket as a ZeroMQ address."""
    return f"ipc://{feed_socket()}"


def jobs_socket() -> Path:
    """Where listeners' workers hand jobs to the scheduler process."""
    return runtime_dir() / "jobs.sock"


def jobs_dir() -> Path:
    """A record and a document for each job, until some time after its end."""
    return state_dir() / "jobs"


def job_record(job: str) -> Path:
    """What is known of a job beside how it stands: its model, for one."""
    return jobs_dir() / f"{job}.json"


def job_document(job: str) -> Path:
    """How a job stands, as its clients read it. The id must be one (job_ids.is_job_id)."""
    return jobs_dir() / f"{job}.document"


def lock_file() -> Path:
    """Held by the one scheduler of this state folder; its text is the holder's pid."""
    return state_dir() / "scheduler.lock"


def sockets_lock_file() -> Path:
    """Held by the one scheduler whose sockets are in this runtime folder; its text is the holder's pid."""
    return runtime_dir() / "sockets.lock"


def config_copies() -> Path:
    """Copies of the configuration's text, for the listeners' workers."""
    return state_dir() / "config"


@dataclass(frozen=True, slots=True)
class ConfigCopy:
    """A copy, as it was put in force at some time."""

    path: Path
    changed_ns: int


def youngest_config_copy() -> ConfigCopy | None:
    """What the scheduler of this state folder put in force last; None = nothing yet."""
    found: list[ConfigCopy] = []
    for path in config_copies().glob("*.yaml"):
        with contextlib.suppress(OSError):  # an old one is being removed
            found.append(ConfigCopy(path, path.stat().st_mtime_ns))
    return max(found, key=lambda copy: copy.changed_ns, default=None)


def log_file(model: ModelId) -> Path:
    """The log a model's child writes itself."""
    return state_dir() / "logs" / f"{quote(model, safe='')}.log"


def state_db() -> Path:
    """What outlives a scheduler and is no log: footprints."""
    return state_dir() / "state.db"


def journal_dir() -> Path:
    """The scheduler's last turns, in numbered segments."""
    return state_dir() / "journal"


def journal_segments(folder: Path) -> list[Path]:
    """The journal's files in a folder, oldest first. Their lines one after the other are the journal."""
    found = (path for path in folder.glob("*.jsonl") if path.stem.isdigit())
    return sorted(found, key=lambda path: int(path.stem))
