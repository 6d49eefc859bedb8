"""How long a look at a host is believed."""

import pytest

from qmsup.core.fleet.sights import BELIEVED_FOR, Sight
from qmsup.ids import HostName
from qmsup.units import Seconds

# How it looked, how long ago → whether it may be used.
TRUST = [
    (True, 0.0, True),
    (True, BELIEVED_FOR - 1, True),
    (True, BELIEVED_FOR, False),
    (False, 0.0, False),
]


@pytest.mark.parametrize(("is_healthy", "ago", "is_trusted"), TRUST)
def test_a_healthy_look_is_believed_for_a_while(
    is_healthy: bool, ago: float, is_trusted: bool
) -> None:
    sight = Sight(host=HostName("a"), at=Seconds(100.0), is_healthy=is_healthy)

    assert sight.is_trusted(Seconds(100.0 + ago)) is is_trusted
