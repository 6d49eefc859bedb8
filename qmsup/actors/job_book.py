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
from qmsup.job_ids import is_job_id, job_path
from qmsup.log import Log
from qmsup.units import Seconds
from qmsup.upstream import job_answers
from qmsup.upstream.job_answers import Document

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
        ended: when, in Unix seconds; None = it runs.
    """

    id: str
    theirs: str
    lease: LeaseId
    model: ModelId
    incarnation: Incarnation
    upstream: str
    kind: str
    ended: float | None = None


class JobBook:
    """For one thread. A disk that takes nothing is complained of, and jobs go on."""

    def keep(self, record: JobRecord, document: Document) -> JobRecord:
        """Keep how a job stands.

        Returns:
            The record, which is ended if the document says so.
        """
        is_over = job_answers.is_over(document)
        if is_over and record.ended is None:
            record = replace(record, ended=time.time())
        told = job_answers.renamed(document, record.id, job_path(record.id))
        # The document first: a job that is on record as ended has its last one.
        _replace(places.job_document(record.id), json.dumps(told).encode())
        _replace(_record_path(record.id), json.dumps(asdict(record)).encode())
        return record

    def document(self, record: JobRecord) -> Document:
        """The last document of a job; of one that was lost, what the record says."""
        try:
            found = json.loads(places.job_document(record.id).read_bytes())
            if isinstance(found, dict):
                return found
        except (OSError, ValueError):
            pass
        return {"id": record.id, "kind": record.kind, "status": "queued"}

    def read_all(self) -> Iterator[JobRecord]:
        """Every job on record. What cannot be read is removed."""
        for path in sorted(places.jobs_dir().glob("*")):
            record = _read(path) if path.suffix == ".json" else None
            if record is not None:
                yield record
            elif path.suffix != ".document" or not _record_path(path.stem).exists():
                _remove(path)

    def forget(self, record: JobRecord) -> None:
        """Its time is over."""
        _remove(_record_path(record.id))
        _remove(places.job_document(record.id))


def _record_path(job: str) -> Path:
    return places.jobs_dir() / f"{job}.json"


def _read(path: Path) -> JobRecord | None:
    try:
        record = JobRecord(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return record if is_job_id(record.id) and path.stem == record.id else None


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    try:
        places.make_private(path.parent)
        fresh.touch(mode=0o600)
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        _remove(fresh)
        _log.warning(
            "job.not_kept",
            file=str(path),
            because=error.strerror,
            hint="clients read an older document until there is room in QMSUP_STATE_DIR",
        )


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
