import pytest

from qmsup.ids import LeaseId
from qmsup.job_ids import is_job_id, job_id, job_path, new_lease_id


@pytest.mark.parametrize("theirs", ["1", "job_6a370bb6_00000000", "a.b-c"])
def test_a_job_is_named_by_its_lease_and_by_its_servers_word_for_it(theirs: str) -> None:
    lease = new_lease_id()

    job = job_id(lease, theirs)

    assert job == f"{lease}-{theirs}"
    assert is_job_id(job)
    assert job_path(job) == f"/sdcpp/v1/jobs/{job}"


@pytest.mark.parametrize("theirs", ["", "../../etc/passwd", "a b", "ä", "x" * 200, ".", "a\n"])
def test_a_word_that_is_no_plain_one_is_left_out(theirs: str) -> None:
    lease = LeaseId("qm0123456789ab")

    assert job_id(lease, theirs) == lease
    assert is_job_id(lease)


@pytest.mark.parametrize(
    "text", ["", "1", "qm", "qm0123456789ab-", "qm0123456789ab-a/b", "qm0123456789AB"]
)
def test_what_is_none_of_ours_is_told(text: str) -> None:
    assert not is_job_id(text)


def test_no_two_leases_have_one_name() -> None:
    assert len({new_lease_id() for _ in range(100)}) == 100
