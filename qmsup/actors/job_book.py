"""What is known of jobs, on disk: a small record for the scheduler's next life, and the document that clients read.

Files, not rows of `state.db`: a video is many megabytes, and listeners' workers read documents without asking anybody,
also while there is no scheduler. Both are replaced as a whole.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from qmsup import places
from qmsup.ids import Incarnation, LeaseId, ModelId
from qmsup.job_ids import is_job_id
from qmsup.log import Log
from qmsup.units import Seconds
from qmsup.upstream import job_answers

KEPT_FOR = Seconds(600.0)
"""From a job's end on its document can be read, whatever became of its model."""

_log = Log("jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job.

    Attributes:
        id: as clients know it.
        theirs: as its server calls it.
        lease: that keeps its model for it.
        incarnation: the start of the model's child that runs it; no other one knows it.
        upstream: of that child.
        kind: `img_gen` or `vid_gen`.
        request: whose grant it was begun under.
        ended: when, in Unix seconds; None = it runs.
    """

    id: str
    theirs: str
    lease: LeaseId
    model: ModelId
    incarnation: Incarnation
    upstream: str
    kind: str
    request: str = ""
    ended: float | None = None


class JobBook:
    """For one thread. A disk that takes nothing is complained of, and jobs go on.

    What it did not take is known here, and tried again; an older document is taken away, so that whoever finds none
    asks here.
    """

    def __init__(self) -> None:
        self._unwritten: dict[str, tuple[JobRecord, bytes]] = {}

    @property
    def is_behind(self) -> bool:
        """Whether there is something that the disk did not take."""
        return bool(self._unwritten)

    def catch_up(self) -> None:
        """Try again to write it."""
        for record, text in tuple(self._unwritten.values()):
            self._write(record, text)

    def keep(self, record: JobRecord, text: bytes) -> JobRecord:
        """Keep how a job stands.

        Args:
            record: of the job.
            text: its document, as clients are to read it.

        Returns:
            The record, which is ended if the document says so.
        """
        if record.ended is None and job_answers.is_over(text):
            record = replace(record, ended=time.time())
        if not self._write(record, text):
            _log.warning(
                "job.not_kept",
                job=record.id,
                folder=str(places.jobs_dir()),
                hint="make room in QMSUP_STATE_DIR: only this process knows how the job stands",
            )
        return record

    def _write(self, record: JobRecord, text: bytes) -> bool:
        # The document first: a job that is on record as ended has its last one.
        document = places.job_document(record.id)
        has_document = _replace(document, text)
        if not has_document:
            _remove(document)
        if has_document and _replace(
            places.job_record(record.id), json.dumps(asdict(record)).encode()
        ):
            self._unwritten.pop(record.id, None)
            return True
        self._unwritten[record.id] = (record, text)
        return False

    def document(self, record: JobRecord) -> bytes:
        """The last document of a job; of one that was lost, what the record says."""
        if (unwritten := self._unwritten.get(record.id)) is not None:
            return unwritten[1]
        with contextlib.suppress(OSError):
            text = places.job_document(record.id).read_bytes()
            if job_answers.status_in(text) is not None:
                return text
        return json.dumps({"id": record.id, "kind": record.kind, "status": "queued"}).encode()

    def read_all(self) -> Iterator[JobRecord]:
        """Every job on record. What cannot be read is removed."""
        for path in sorted(places.jobs_dir().glob("*")):
            record = _read(path) if path.suffix == ".json" else None
            if record is not None:
                yield record
            elif path.suffix != ".document" or not places.job_record(path.stem).exists():
                _remove(path)

    def forget(self, record: JobRecord) -> None:
        """Its time is over."""
        self._unwritten.pop(record.id, None)
        _remove(places.job_record(record.id))
        _remove(places.job_document(record.id))


def _read(path: Path) -> JobRecord | None:
    try:
        record = JobRecord(**json.loads(path.read_bytes()))
        is_ours = is_job_id(record.id) and path.stem == record.id
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return record if is_ours else None


def _replace(path: Path, content: bytes) -> bool:
    fresh = path.with_name(f"{path.name}.new")
    try:
        places.make_private(path.parent)
        fresh.touch(mode=0o600)
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError:
        _remove(fresh)
        return False
    return True


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
