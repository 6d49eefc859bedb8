"""What comes out of the gauge."""

from qmsup.core.vram.reading import NOTHING_YET, Reading


def test_a_reading_is_trusted_unless_there_is_a_reason_not_to() -> None:
    assert Reading(because="").is_trusted
    assert not Reading().is_trusted
    assert Reading().because == NOTHING_YET
