"""What a sample tells."""

from qmsup.core.vram.sample import Card
from qmsup.units import MiB


def test_a_card_whose_use_is_unknown_has_no_known_free_memory() -> None:
    assert Card(uuid="u", name="n", total=MiB(100)).free is None


def test_free_is_what_nobody_uses_and_never_less_than_nothing() -> None:
    assert Card(uuid="u", name="n", total=MiB(100), used=MiB(30)).free == 70
    assert Card(uuid="u", name="n", total=MiB(100), used=MiB(130)).free == 0
