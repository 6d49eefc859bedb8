import pytest

from qmsup.units import (
    MiB,
    Seconds,
    mib_from_bytes,
    mib_from_gb,
    ms_from_seconds,
    seconds_from_ms,
)


@pytest.mark.parametrize(("gb", "mib"), [(0, 0), (1, 1024), (5.2, 5325), (0.0004, 0), (24, 24576)])
def test_a_gb_of_the_configuration_is_1024_mib(gb: float, mib: int) -> None:
    assert mib_from_gb(gb) == MiB(mib)


def test_bytes_become_mib_to_the_nearest() -> None:
    assert mib_from_bytes(8 * 1024**3) == MiB(8192)
    assert mib_from_bytes(1024**2 * 3 // 2 + 1) == MiB(2)


def test_milliseconds_become_seconds_and_back() -> None:
    assert seconds_from_ms(1500) == Seconds(1.5)
    assert ms_from_seconds(Seconds(1.5)) == 1500
    assert ms_from_seconds(Seconds(0.0006)) == 1
