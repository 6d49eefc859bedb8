import pytest

from qmsup.core.scheduling.effects import ArmWake
from qmsup.core.scheduling.messages import message
from qmsup.ids import EventNumber
from qmsup.units import Seconds


@message
class Word:
    """Something that is said."""

    text: str


def test_messages_are_compared_and_kept_by_their_content() -> None:
    assert Word(text="a") == Word(text="a") != Word(text="b")
    assert {Word(text="a"), Word(text="a")} == {Word(text="a")}
    assert repr(ArmWake(cause=EventNumber(1), at=Seconds(2.0))) == "ArmWake(cause=1, at=2.0)"


def test_a_message_has_the_fields_it_names_and_no_others() -> None:
    with pytest.raises(TypeError, match="positional"):
        Word("a")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Word(text="a").other = 1  # type: ignore[attr-defined]
