"""How jobs are named, and in which words a listener's worker hands one to the scheduler process.

Two model servers may give the same id, so ours stands before it: `qm3f9a1c2b4d5e-7`. The part before the dash is the
job's lease, chosen before the model's server is asked; a server's id that is no plain word is left out.
"""

import re
import secrets

from qmsup.ids import LeaseId

REQUEST_HEADER = "X-QM-Request-Id"
"""Names, to the scheduler process, the request whose grant a job is begun under."""

_PREFIX = "qm"
_DIGITS = 12
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_ID = re.compile(rf"({_PREFIX}[0-9a-f]{{{_DIGITS}}})(?:-{_PLAIN.pattern})?")


def new_lease_id() -> LeaseId:
    """A name for the lease of a job that is about to be begun."""
    return LeaseId(_PREFIX + secrets.token_hex(_DIGITS // 2))


def job_id(lease: LeaseId, theirs: str) -> str:
    """The id that clients see.

    Args:
        lease: of the job.
        theirs: what the model's server calls it.
    """
    return f"{lease}-{theirs}" if _PLAIN.fullmatch(theirs) else lease


def is_job_id(text: str) -> bool:
    """Whether this may name a job. What does can be a file's name, too."""
    return _ID.fullmatch(text) is not None


def job_path(job: str) -> str:
    """Where a client asks for it."""
    return f"/sdcpp/v1/jobs/{job}"
